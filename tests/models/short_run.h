// A short run of a model that is the same on every device: two prompts of the reference, eight tokens after each.
#pragma once

#include <algorithm>
#include <cmath>

#include "models/reference.h"

namespace shunt::models {

inline constexpr std::size_t kShortRunTokens = 8;
inline constexpr const char* kQuantizedModel = SHUNT_TEST_DATA "/../../models/tiny-llama-q8_0.gguf";

inline Token best_of(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

struct ShortRun {
  std::vector<std::vector<Token>> tokens;  // generated greedily after each prompt
  std::vector<float> logits;               // along the tokens that were forced, for all prompts
};

// Both prompts in two sequences of one session. First greedily, each step a batch of both; then along `forced`, or
// where there are none along what came out.
inline ShortRun short_run(Session& session, const std::vector<std::vector<Token>>& forced) {
  ShortRun run{.tokens = std::vector<std::vector<Token>>(2)};
  std::vector<std::vector<Token>> prompts;
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
    prompts.push_back(reference()["prompts"][sequence]["ids"].get<std::vector<Token>>());
    const Status read = session.append(sequence, prompts.back());
    EXPECT_TRUE(read.has_value()) << read.error().message;
    if (!read) return run;
    run.tokens[sequence].push_back(best_of(session.logits(0)));
  }
  while (run.tokens[0].size() < kShortRunTokens) {
    const BatchToken batch[] = {{.sequence = 0, .token = run.tokens[0].back(), .wants_logits = true},
                                {.sequence = 1, .token = run.tokens[1].back(), .wants_logits = true}};
    const Status done = session.decode(batch);
    EXPECT_TRUE(done.has_value()) << done.error().message;
    if (!done) return run;
    for (std::uint32_t sequence = 0; sequence < 2; ++sequence)
      run.tokens[sequence].push_back(best_of(session.logits(sequence)));
  }
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) session.truncate(sequence, 0);
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    std::vector<Token> tokens = prompts[index];
    const std::vector<Token>& next = forced.empty() ? run.tokens[index] : forced[index];
    tokens.insert(tokens.end(), next.begin(), next.end() - 1);
    const std::vector<float> rows = last_logits(session, tokens, kShortRunTokens);
    run.logits.insert(run.logits.end(), rows.begin(), rows.end());
  }
  return run;
}

// The same text as cpu:scalar gives, and along it the same logits but for rounding.
inline void expect_the_scalar_devices_run(Session& session, const std::string& path) {
  Loaded exact(path, "cpu:scalar", session.options());
  const ShortRun expected = short_run(*exact.session, {});
  const ShortRun run = short_run(session, expected.tokens);
  EXPECT_EQ(run.tokens, expected.tokens);
  ASSERT_EQ(run.logits.size(), expected.logits.size());
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < run.logits.size(); ++i) {
    error += std::pow(double{run.logits[i]} - expected.logits[i], 2);
    power += std::pow(double{expected.logits[i]}, 2);
  }
  EXPECT_LE(error / power, 1e-6);
}

}  // namespace shunt::models
