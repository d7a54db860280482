// The trained model against Hugging Face transformers: token ids, logits, greedy tokens and perplexity.
#include "models/reference.h"

#include <cmath>

namespace shunt::models {
namespace {

constexpr const char* kExact = "cpu:scalar";
constexpr SessionOptions kExactOptions{.context = 1024, .cache_dtype = DType::F32};

struct Setup {
  const char* devices;
  DType cache;
  double logit_tolerance;
};

class TrainedModel : public testing::TestWithParam<Setup> {
 protected:
  Loaded loaded_{kTrainedModel, GetParam().devices, {.context = 1024, .cache_dtype = GetParam().cache}};
};

TEST_P(TrainedModel, GivesTheReferencesLogits) {
  ASSERT_EQ(reference()["prompts"].size(), 9U);
  for (const auto& prompt : reference()["prompts"]) {
    const auto logits = last_logits(*loaded_.session, prompt["ids"].get<std::vector<Token>>(), 1);
    ASSERT_EQ(logits.size(), loaded_.model->config().vocabulary);
    for (std::size_t i = 0; i < prompt["top_ids"].size(); ++i)
      EXPECT_NEAR(logits[prompt["top_ids"][i].get<std::size_t>()], prompt["top_logits"][i].get<double>(),
                  GetParam().logit_tolerance)
          << prompt["text"];
  }
}

TEST_P(TrainedModel, AgreesWithTheReferencesGreedyTokens) {
  // Another choice is right only if the two best logits of the scalar F32 path are closer than this.
  constexpr float kMargin = 1e-2F;
  const bool is_exact = std::string_view(GetParam().devices) == kExact;
  const auto exact = is_exact ? nullptr : std::make_unique<Loaded>(kTrainedModel, kExact, kExactOptions);
  std::size_t compared = 0;
  for (const auto& prompt : reference()["prompts"]) {
    auto tokens = prompt["ids"].get<std::vector<Token>>();
    const auto greedy = prompt["greedy_ids"].get<std::vector<Token>>();
    tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
    const auto rows = last_logits(*loaded_.session, tokens, greedy.size());
    const auto exact_rows = is_exact ? rows : last_logits(*exact->session, tokens, greedy.size());
    const std::size_t vocabulary = loaded_.model->config().vocabulary;
    ASSERT_EQ(rows.size(), greedy.size() * vocabulary);
    for (std::size_t i = 0; i < greedy.size(); ++i) {
      const std::span<const float> row(rows.data() + i * vocabulary, vocabulary);
      const auto best = static_cast<Token>(std::ranges::max_element(row) - row.begin());
      std::vector<float> sorted(exact_rows.begin() + static_cast<std::ptrdiff_t>(i * vocabulary),
                                exact_rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocabulary));
      std::ranges::partial_sort(sorted, sorted.begin() + 2, std::ranges::greater{});
      if (sorted[0] - sorted[1] < kMargin) continue;
      EXPECT_EQ(best, greedy[i]) << prompt["text"] << " token " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 700U);
}

TEST_P(TrainedModel, HasTheReferencesPerplexity) {
  const auto ids = reference()["perplexity"]["ids"].get<std::vector<Token>>();
  const auto rows = last_logits(*loaded_.session, ids, ids.size());
  const std::size_t vocabulary = loaded_.model->config().vocabulary;
  ASSERT_EQ(rows.size(), ids.size() * vocabulary);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::span<const float> row(rows.data() + i * vocabulary, vocabulary);
    const double best = *std::ranges::max_element(row);
    double total = 0;
    for (const float logit : row) total += std::exp(logit - best);
    sum += best + std::log(total) - row[static_cast<std::size_t>(ids[i + 1])];
  }
  EXPECT_NEAR(sum / static_cast<double>(ids.size() - 1), reference()["perplexity"]["mean_nll"].get<double>(), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainedModel,
                         testing::Values(Setup{kExact, DType::F32, 1e-4},
                                         Setup{"cpu:simd,cpu:scalar", DType::F16, 1e-2},
                                         Setup{"cpu:simd,cpu:scalar", DType::Q8_0, 1e-1}),
                         [](const auto& setup) {
                           return setup.index == 0 ? "Scalar" : "Simd" + std::string(name_of(setup.param.cache));
                         });

}  // namespace
}  // namespace shunt::models
