// Attention at the depth that the longest usual contexts have.
#include "ops/attention_steps.h"
#include "ops/bench_layers.h"
#include "sanitized.h"

namespace shunt::test::attention_tests {
namespace {

constexpr int kDepth = 131072;
constexpr std::size_t kDeepTokens = 9;
constexpr float kScale = 0.17677670F;  // of models: 1 / sqrt(32)

// A prompt with too many tokens for parts, of which the last nine see most. Their results take the formula's time.
Setting deep_prompt(DType state) {
  return {.head_dim = 32,
          .page_tokens = 256,
          .sequence_pages = kDepth / 256,
          .sequences = 1,
          .tokens = joined(prompt(0, 0, 24), prompt(0, kDepth - int{kDeepTokens}, kDeepTokens)),
          .state = state};
}

// Returns the same step with the last token alone, whose positions have parts.
Step last_token_of(const Step& step) {
  Step last = step;
  const std::vector<double> query = values_of(step.query);
  last.query = tensor_of(DType::F32, {1, 1, 32}, {query.end() - 32, query.end()});
  last.positions = tensor_of(DType::I32, {1}, {kDepth - 1});
  last.sequences = tensor_of(DType::I32, {1}, {0});
  return last;
}

// Returns the results of the tokens that see most.
std::vector<double> deep_rows(std::vector<double> results) {
  results.erase(results.begin(), results.end() - kDeepTokens * 32);
  return results;
}

std::vector<double> results_of(const Step& step, Numerics numerics, std::uint32_t threads) {
  KernelCase use = step.use(kScale);
  use.numerics = numerics;
  return values_of(run_kernel(*cpu_family("attention").simd, use, threads).output);
}

// By vectors, by the processor's matrix tiles where it has them, and for one token.
TEST(AttentionAtDepth, ResultsAreAsTheFormulaSays) {
  for (const DType state : {DType::F32, DType::F16, DType::Q8_0}) {
    if (test::kSanitized && state != DType::Q8_0) continue;  // for time
    const Step step = step_of(deep_prompt(state), 41);
    const Step last = last_token_of(step);
    SCOPED_TRACE(step.use().text());
    const std::vector<double> expected = deep_rows(formula(step, static_cast<double>(kScale)));
    const std::vector<double> expected_last(expected.end() - 32, expected.end());
    for (const std::uint32_t threads : {1U, 3U}) {
      EXPECT_LE(nmse(deep_rows(results_of(step, Numerics::exact, threads)), expected), 1e-12);
      // Caches of F32 have matrix tiles only where halves would do.
      EXPECT_LE(nmse(deep_rows(results_of(step, Numerics::fast, threads)), expected),
                info_of(Arithmetic::bf16x3).error);
      EXPECT_LE(nmse(results_of(last, Numerics::exact, threads), expected_last), 1e-12);
    }
  }
}

TEST(AttentionAtDepth, LayersThatBenchmarksMeasureSeeWhatTheirCostCounts) {
  for (const BenchLayer& layer : bench_layers(Op::attention)) {
    const BenchOperands operands(layer.use);
    const auto result = infer(Op::attention, operands.call().inputs, layer.use.attributes);
    ASSERT_TRUE(result.has_value()) << layer.name << ": " << result.error().message;
    EXPECT_EQ(result->operand.shape, layer.use.output.shape) << layer.name;
    const std::uint64_t depth = layer.use.inputs[3].indices.first + 1;
    EXPECT_EQ(layer.name, "depth" + std::to_string(depth));
    EXPECT_EQ(info_of(Op::attention).rule->cost(operands.call()).flops,
              4.0 * static_cast<double>(layer.use.output.shape.elements() * depth));
  }
}

}  // namespace
}  // namespace shunt::test::attention_tests
