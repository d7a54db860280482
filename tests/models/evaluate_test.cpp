// Compares sessions on logits made by hand: KL divergence, perplexity, and the bounds of agreement.
// models/release/device_architectures_test.cpp compares whole models.
#include "models/evaluate.h"

#include <cmath>
#include <limits>
#include <vector>

#include "models/gguf/gguf_bytes.h"
#include "models/quantize/quantizer.h"
#include "models/reference.h"
#include "ops/arithmetic.h"

namespace shunt::models {
namespace {

float log_of(double probability) { return static_cast<float>(std::log(probability)); }

TEST(KlDivergence, IsThatOfTheDistributions) {
  const std::vector<float> exact = {log_of(0.5), log_of(0.25), log_of(0.25)};
  const std::vector<float> other = {log_of(0.25), log_of(0.25), log_of(0.5)};
  EXPECT_NEAR(kl_divergence(exact, other), 0.5 * std::log(2.0) - 0.25 * std::log(2.0), 1e-7);
}

TEST(KlDivergence, IsFromTheFirstToTheSecond) {
  const std::vector<float> sure = {log_of(0.9), log_of(0.1)};
  const std::vector<float> unsure = {0, 0};
  EXPECT_NEAR(kl_divergence(sure, unsure), 0.9 * std::log(1.8) + 0.1 * std::log(0.2), 1e-7);
  EXPECT_NEAR(kl_divergence(unsure, sure), 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(0.5 / 0.1), 1e-7);
}

TEST(KlDivergence, LeavesOutWhatSoftmaxDoes) {
  const std::vector<float> logits = {1, -2, 3, 700};
  std::vector<float> shifted = logits;
  for (float& logit : shifted) logit += 64;
  EXPECT_EQ(kl_divergence(logits, logits), 0);
  EXPECT_NEAR(kl_divergence(logits, shifted), 0, 1e-12);
}

TEST(KlDivergence, CountsTokensThatTheOtherRulesOut) {
  EXPECT_NEAR(kl_divergence(std::vector<float>{0, 0}, std::vector<float>{0, -2000}), 1000 - std::log(2.0), 1e-9);
  EXPECT_NEAR(kl_divergence(std::vector<float>{0, -2000}, std::vector<float>{0, 0}), std::log(2.0), 1e-9);
}

TEST(KlDivergence, IsSmallWhereDifferencesAre) {
  // The divergence is of order e^2 / 2 for differences e, far below what sums of floats keep.
  const std::vector<float> exact(1000, 1.0F);
  std::vector<float> other = exact;
  for (std::size_t token = 0; token < other.size(); token += 2) other[token] += 0x1p-10F;
  EXPECT_NEAR(kl_divergence(exact, other) / (0x1p-20 / 8), 1, 1e-3);
}

TEST(KlDivergence, OfNanIsNan) {
  EXPECT_TRUE(std::isnan(kl_divergence(std::vector<float>{0, NAN}, std::vector<float>{0, 0})));
  EXPECT_TRUE(std::isnan(kl_divergence(std::vector<float>{0, 0}, std::vector<float>{NAN, 0})));
}

// Results of a session that agrees in all, by `numerics`.
Agreement same_in_all(Numerics numerics) {
  return {.numerics = numerics,
          .tokens = 100,
          .same_best = 100,
          .decided = 80,
          .same = 80,
          .mean_nll = 0.7,
          .exact_mean_nll = 0.7};
}

TEST(AgreementOf, ExactNumericsIsBoundedInLogitsAndBestTokens) {
  Agreement agreement = same_in_all(Numerics::exact);
  EXPECT_TRUE(agreement.ok());
  agreement.nmse = 0.99e-4;
  agreement.mean_kl = 1.49e-4;
  agreement.same_best = 90;
  EXPECT_TRUE(agreement.ok());
  agreement.same = 79;
  EXPECT_FALSE(agreement.ok());
  agreement.same = 80;
  agreement.nmse = 1.01e-4;
  EXPECT_FALSE(agreement.ok());
  agreement.nmse = 0;
  agreement.mean_kl = 1.51e-4;
  EXPECT_FALSE(agreement.ok());
}

TEST(AgreementOf, AutomaticNumericsIsBoundedInKlDivergence) {
  Agreement agreement = same_in_all(Numerics::automatic);
  agreement.nmse = 1e-2;
  agreement.same = 79;
  agreement.mean_nll = 0.704;
  agreement.mean_kl = 1.49e-4;
  EXPECT_TRUE(agreement.ok());
  agreement.mean_kl = 1.51e-4;
  EXPECT_FALSE(agreement.ok());
}

TEST(AgreementOf, FastNumericsIsBoundedInKlDivergenceAndPerplexity) {
  Agreement agreement = same_in_all(Numerics::fast);
  agreement.nmse = 1e-2;
  agreement.same = 79;
  agreement.mean_kl = 0.99e-3;
  EXPECT_TRUE(agreement.ok());
  agreement.mean_kl = 1.01e-3;
  EXPECT_FALSE(agreement.ok());
  agreement.mean_kl = 0;
  for (const double sign : {-1, 1}) {
    agreement.mean_nll = 0.7 + sign * 0.00298;
    EXPECT_TRUE(agreement.ok());
    agreement.mean_nll = 0.7 + sign * 0.00302;
    EXPECT_FALSE(agreement.ok());
  }
}

TEST(AgreementOf, NumbersThatAreNoneIsNoAgreement) {
  for (const Numerics numerics : {Numerics::exact, Numerics::automatic, Numerics::fast}) {
    Agreement agreement = same_in_all(numerics);
    agreement.mean_kl = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(agreement.ok()) << name_of(numerics);
    agreement = same_in_all(numerics);
    agreement.nmse = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(agreement.ok()) << name_of(numerics);
  }
}

TEST(AgreementOf, OneTokenHasNoPerplexity) {
  Agreement agreement = same_in_all(Numerics::fast);
  agreement.mean_nll.reset();
  agreement.exact_mean_nll.reset();
  EXPECT_EQ(agreement.perplexity_change(), 0);
  EXPECT_TRUE(agreement.ok());
}

// No numerics allow what Q2_K weights make of the trained model's text.
TEST(AgreementOf, WeightsOfTwoTypesIsNone) {
  TestFolder folder;
  const std::string path = folder.file("Q2_K");
  ASSERT_TRUE(quantize_file(kTrainedModel, path, "Q2_K").has_value());
  const Loaded exact(kTrainedModel, "cpu:simd", {.context = 1024, .numerics = Numerics::exact});
  const Loaded rounded(path, "cpu:simd", {.context = 1024, .numerics = Numerics::fast});
  const auto tokens = reference()["perplexity"]["ids"].get<std::vector<Token>>();
  Agreement found = Loaded::take(compare(*rounded.session, *exact.session, tokens, {}));
  EXPECT_EQ(found.numerics, Numerics::fast);
  EXPECT_GT(found.mean_kl, 1e-2);
  EXPECT_GT(found.largest_kl, found.mean_kl);
  EXPECT_NEAR(found.perplexity_change(), 0.0436, 0.002) << "docs/quantization.md";
  for (const Numerics numerics : {Numerics::exact, Numerics::automatic, Numerics::fast}) {
    found.numerics = numerics;
    EXPECT_FALSE(found.ok()) << name_of(numerics);
  }
}

TEST(AgreementOf, OneSessionTwiceIsWhole) {
  const Loaded loaded(kTrainedModel, "cpu:simd", {.context = 64, .numerics = Numerics::exact});
  const Loaded again(kTrainedModel, "cpu:simd", {.context = 64, .numerics = Numerics::exact});
  const std::vector<Token> tokens = prompt_ids(0);
  const Agreement found = Loaded::take(compare(*loaded.session, *again.session, tokens, {.alone = 0, .progress = {}}));
  EXPECT_EQ(found.tokens, tokens.size());
  EXPECT_EQ(found.same_best, tokens.size());
  EXPECT_EQ(found.largest_kl, 0);
  EXPECT_EQ(found.mean_nll, found.exact_mean_nll);
  loaded.session->truncate(0, 0);
  EXPECT_EQ(found.mean_nll, Loaded::take(evaluate(*loaded.session, tokens, {.perplexity = true})).mean_nll);
}

}  // namespace
}  // namespace shunt::models
