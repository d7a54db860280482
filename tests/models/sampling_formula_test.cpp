// The sampler against a plain rewrite of its description: a list of pairs, in double.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "models/sampling.h"

namespace shunt::models {
namespace {

struct Option {
  double logit;
  std::int32_t token;
};

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Returns the tokens left after penalty, top-k, top-p and min-p, best first.
std::vector<Option> filtered(const SamplingOptions& options, std::span<const float> logits,
                             std::span<const std::int32_t> history) {
  std::vector<Option> list;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<std::int32_t>(i);
    float logit = logits[i];
    bool recent = false;
    for (std::size_t back = 1; back <= std::min<std::size_t>(history.size(), options.repeat_last_n); ++back)
      recent = recent || history[history.size() - back] == token;
    if (recent) logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
    list.push_back({.logit = logit, .token = token});
  }
  std::ranges::sort(list, [](const Option& a, const Option& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  if (options.greedy || options.temperature == 0) return {list[0]};
  if (options.top_k != 0 && options.top_k < list.size()) list.resize(options.top_k);
  std::vector<double> probabilities;
  for (const Option& option : list) probabilities.push_back(std::exp(option.logit - list[0].logit));
  const double total = sum_of(probabilities);
  for (double& probability : probabilities) probability /= total;
  std::size_t keep = 0;
  double sum = 0;
  while (keep < list.size() && (options.top_p == 1 || sum < static_cast<double>(options.top_p)))
    sum += probabilities[keep++];
  while (keep > 1 && probabilities[keep - 1] < static_cast<double>(options.min_p) * probabilities[0]) --keep;
  list.resize(keep);
  return list;
}

// Returns the token whose part of the interval from 0 to 1 contains `unit`.
std::int32_t drawn(const std::vector<Option>& list, float temperature, double unit) {
  std::vector<double> weights;
  for (const Option& option : list)
    weights.push_back(std::exp((option.logit - list[0].logit) / static_cast<double>(temperature)));
  const double total = sum_of(weights);
  double sum = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    sum += weights[i] / total;
    if (unit < sum) return list[i].token;
  }
  return list.back().token;
}

template <class T>
T one_of(std::mt19937& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

TEST(SamplerFormula, EveryDrawIsTheOneOfTheDescription) {
  std::size_t cut = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, one_of(random, {0.5F, 2.0F, 6.0F}));
    std::vector<float> logits(1 + random() % 80);
    for (float& logit : logits) logit = normal(random);
    // Includes equal ones.
    for (std::size_t i = 0; i < logits.size() / 5; ++i) logits[random() % logits.size()] = logits[0];
    std::vector<std::int32_t> history(random() % 40);
    for (std::int32_t& token : history) token = static_cast<std::int32_t>(random() % (logits.size() + 2)) - 1;
    const SamplingOptions options{.temperature = one_of(random, {0.0F, 0.3F, 0.8F, 1.0F, 1.7F}),
                                  .top_k = one_of(random, {0U, 1U, 5U, 40U}),
                                  .top_p = one_of(random, {1.0F, 0.95F, 0.5F, 0.01F}),
                                  .min_p = one_of(random, {0.0F, 0.05F, 0.3F, 1.0F}),
                                  .repeat_penalty = one_of(random, {1.0F, 1.1F, 2.0F, 0.7F}),
                                  .repeat_last_n = one_of(random, {0U, 3U, 64U}),
                                  .seed = seed,
                                  .greedy = random() % 8 == 0};
    auto sampler = Sampler::create(options);
    ASSERT_TRUE(sampler.has_value());
    SplitMix64 numbers(seed);
    const std::vector<Option> left = filtered(options, logits, history);
    cut += left.size() < logits.size() ? 1U : 0U;
    for (int draw = 0; draw < 30; ++draw) {
      const bool greedy = options.greedy || options.temperature == 0;
      const std::int32_t expected = greedy ? left[0].token : drawn(left, options.temperature, numbers.next_unit());
      ASSERT_EQ(sampler->sample(logits, history), expected) << "draw " << draw;
    }
  }
  EXPECT_GT(cut, 500U);
}

}  // namespace
}  // namespace shunt::models
