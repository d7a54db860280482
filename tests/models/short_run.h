// A short run of a model with the same result on every device: two prompts of the reference, four tokens after each.
#pragma once

#include <algorithm>
#include <cmath>

#include "models/reference.h"

namespace shunt::models {

inline constexpr std::size_t kShortRunTokens = 4;
inline constexpr const char* kQuantizedModel = SHUNT_TEST_DATA "/../../models/tiny-llama-q8_0.gguf";

// Greedy continuations of two prompts, as two sequences of one session; each step is a batch of both.
inline std::vector<std::vector<Token>> short_run(Session& session) {
  std::vector<std::vector<Token>> tokens(2);
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
    const Status read = session.prefill(sequence, prompt_ids(sequence));
    EXPECT_TRUE(read.has_value()) << read.error().message;
    if (!read) return tokens;
    tokens[sequence].push_back(best_of(session.logits(0)));
  }
  while (tokens[0].size() < kShortRunTokens) {
    const BatchToken batch[] = {{.sequence = 0, .token = tokens[0].back(), .wants_logits = true},
                                {.sequence = 1, .token = tokens[1].back(), .wants_logits = true}};
    const Status done = session.decode(batch);
    EXPECT_TRUE(done.has_value()) << done.error().message;
    if (!done) return tokens;
    for (std::uint32_t sequence = 0; sequence < 2; ++sequence)
      tokens[sequence].push_back(best_of(session.logits(sequence)));
  }
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) session.truncate(sequence, 0);
  return tokens;
}

// Returns the logits from which each of the given tokens is chosen, if they follow the prompts.
inline std::vector<float> logits_along(Session& session, const std::vector<std::vector<Token>>& tokens) {
  std::vector<float> logits;
  for (std::size_t index = 0; index < tokens.size(); ++index) {
    auto text = prompt_ids(index);
    text.insert(text.end(), tokens[index].begin(), tokens[index].end() - 1);
    const std::vector<float> rows = last_logits(session, text, tokens[index].size());
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

// Expects the same logits, except for a normalized mean square error of at most `most`: that of rounding, unless told.
inline void expect_like(std::span<const float> logits, std::span<const float> expected, double most = 1e-6) {
  ASSERT_EQ(logits.size(), expected.size());
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    error += std::pow(double{logits[i]} - expected[i], 2);
    power += std::pow(double{expected[i]}, 2);
  }
  EXPECT_LE(error / power, most);
}

// Expects the text of cpu:scalar and, along it, the same logits except for rounding.
inline void expect_the_scalar_devices_run(Session& session, const std::string& path) {
  const Loaded exact(path, "cpu:scalar", session.options());
  const std::vector<std::vector<Token>> tokens = short_run(*exact.session);
  for (const std::vector<Token>& each : tokens) ASSERT_EQ(each.size(), kShortRunTokens);
  EXPECT_EQ(short_run(session), tokens);
  expect_like(logits_along(session, tokens), logits_along(*exact.session, tokens));
}

}  // namespace shunt::models
