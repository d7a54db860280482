// Products in integers of 16 bits keep the trained model within 1e-8 nats of exact ones, whatever instructions the
// processor has for them. The cache is F32, since one of F16 would round keys and values on top.
#include <set>
#include <string>
#include <vector>

#include "models/evaluate.h"
#include "models/gguf/gguf_bytes.h"
#include "models/quantize/quantizer.h"
#include "models/reference.h"
#include "ops/arithmetic.h"
#include "ops/each_target.h"
#include "ops/linear/word_blocking.h"
#include "plan/plan.h"

namespace shunt::models {
namespace {

constexpr double kMostKl = 1e-8;
constexpr std::uint32_t kContext = 1024;
constexpr std::uint32_t kPrompt = 512;
// Up to so many token rows every quantized dtype is multiplied in words.
constexpr std::uint32_t kFew = 8;

// The arithmetics of a step's products.
std::set<Arithmetic> arithmetics_of(Session& session, std::uint32_t tokens) {
  const Plan* const plan = Loaded::take(session.plan_for(tokens, tokens));
  std::set<Arithmetic> found;
  for (const Decision& decision : plan->decisions)
    for (const Candidate& candidate : decision.candidates)
      if (candidate.device == decision.device) found.insert(candidate.arithmetic);
  return found;
}

// A model of a type, whose steps have up to `step` tokens.
class InWords {
 public:
  InWords(const char* type, std::uint32_t step) : step_(step), path_(folder_.file(type)) {
    EXPECT_TRUE(quantize_file(kTrainedModel, path_, type).has_value());
  }

  void expect_to_agree() const {
    const auto tokens = reference()["perplexity"]["ids"].get<std::vector<Token>>();
    const Loaded exact(path_, "cpu:simd", options(Numerics::exact));
    const Loaded words(path_, "cpu:simd", options(Numerics::automatic));
    EXPECT_EQ(arithmetics_of(*words.session, step_), (std::set{Arithmetic::f32, Arithmetic::words}));
    EXPECT_EQ(arithmetics_of(*exact.session, step_), std::set{Arithmetic::f32});
    const Agreement found = Loaded::take(compare(*words.session, *exact.session, tokens, {}));
    EXPECT_EQ(found.tokens, tokens.size());
    EXPECT_GT(found.mean_kl, 0);
    EXPECT_LT(found.mean_kl, kMostKl);
  }

 private:
  [[nodiscard]] SessionOptions options(Numerics numerics) const {
    return {.context = kContext, .cache_dtype = DType::F32, .max_batch_tokens = step_, .numerics = numerics};
  }

  std::uint32_t step_;
  TestFolder folder_;
  std::string path_;
};

// Runs a test body with each instruction set that multiplies in words, AVX-512 with and without VNNI; never with AMX,
// which multiplies prompts in BF16.
template <class Body>
void for_each_way(Body body) {
  int ways = 0;
  const auto count = [&] {
    ++ways;
    body();
  };
  test::for_each_simd_target([&] {
    const bool has_amx = hwy::SupportedTargets() == HWY_AVX3 && cpu_features().amx_bf16;
    if (word_rows(DType::Q8_0) != 0 && !has_amx) count();
  });
  test::for_each_fewer_features(count);
  if (ways == 0) GTEST_SKIP() << "no instruction set of this processor multiplies in words";
}

TEST(Words, KeepPromptsNearExactOnes) {
  const InWords model("Q8_0", kPrompt);
  for_each_way([&] {
    EXPECT_TRUE(has_word_tiles(DType::Q8_0));
    model.expect_to_agree();
  });
}

TEST(Words, KeepFewTokensNearExactOnes) {
  for (const char* type : {"Q8_0", "Q6_K", "Q4_K_M"}) {
    SCOPED_TRACE(type);
    const InWords model(type, kFew);
    for_each_way([&] { model.expect_to_agree(); });
  }
}

}  // namespace
}  // namespace shunt::models
