// Sequences of one session whose tokens share batches. On one thread, so not where ThreadSanitizer runs.
#include <algorithm>

#include "models/generate.h"
#include "models/reference.h"
#include "sanitized.h"

namespace shunt::models {
namespace {

TEST(Interleaved, SequencesGiveTheTokensOfEachAlone) {
  constexpr std::size_t kSequences = 3;
  // Enough that each sequence has several pages of the cache.
  constexpr std::size_t kCount = test::kSanitized ? 18 : 45;
  const auto runtime = Loaded::take(Runtime::create({.threads = 1, .devices = "cpu:scalar"}));
  const auto model = Loaded::take(Model::load(kTrainedModel));
  std::vector<std::vector<Token>> alone;
  std::vector<std::vector<Token>> prompts;
  for (std::size_t i = 0; i < kSequences; ++i) {
    prompts.push_back(prompt_ids(i == 0 ? 8 : i));
    const auto single = Loaded::take(Session::create(*model, *runtime, {.context = 256}));
    alone.push_back(
        Loaded::take(
            generate(*single, prompts[i],
                     {.max_tokens = kCount, .sampling = {.repeat_penalty = 1.5F, .seed = i}, .ignore_end = true}, {}))
            .tokens);
  }
  const auto owned = Loaded::take(Session::create(*model, *runtime, {.context = 256, .max_sequences = kSequences}));
  Session& session = *owned;
  std::vector<Sampler> samplers;
  std::vector<std::vector<Token>> history = prompts;
  // All prompts in one batch, with their tokens interleaved.
  std::vector<BatchToken> batch;
  std::vector<std::uint32_t> order;  // sequences in the order of logits()
  for (std::size_t position = 0; position < 200; ++position)
    for (std::uint32_t i = 0; i < kSequences; ++i) {
      if (position >= prompts[i].size()) continue;
      const bool last = position + 1 == prompts[i].size();
      batch.push_back({.sequence = i, .token = prompts[i][position], .wants_logits = last});
      if (last) order.push_back(i);
    }
  for (std::size_t i = 0; i < kSequences; ++i)
    samplers.push_back(Loaded::take(Sampler::create({.repeat_penalty = 1.5F, .seed = i})));
  std::vector<std::vector<Token>> tokens(kSequences);
  for (std::size_t step = 0; step < kCount; ++step) {
    const Status done = session.decode(batch);
    ASSERT_TRUE(done.has_value()) << done.error().message;
    batch.clear();
    for (std::size_t row = 0; row < order.size(); ++row) {
      const std::uint32_t i = order[row];
      tokens[i].push_back(samplers[i].sample(session.logits(row), history[i]).value());
      history[i].push_back(tokens[i].back());
      batch.push_back({.sequence = i, .token = tokens[i].back(), .wants_logits = true});
    }
    std::ranges::reverse(batch);
    std::ranges::reverse(order);
  }
  for (std::size_t i = 0; i < kSequences; ++i) EXPECT_EQ(tokens[i], alone[i]) << "sequence " << i;
}

}  // namespace
}  // namespace shunt::models
