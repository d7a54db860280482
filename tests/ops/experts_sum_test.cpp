#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::experts_sum_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("experts_sum").scalar; }
const CpuKernel& simd() { return *cpu_family("experts_sum").simd; }

struct Inputs {
  Tensor x;
  Tensor scores;
  Tensor ids;
  Tensor residual;
  float scale = 1;

  [[nodiscard]] KernelCase use(std::uint32_t tokens = 3) const {
    Attributes attributes;
    attributes.set(Attr::scale, scale);
    return {Op::experts_sum, {&x, &scores, &ids, &residual}, attributes, {.tokens = tokens, .outputs = 2}};
  }
};

Inputs inputs_of(std::uint32_t tokens, std::uint32_t used, std::uint32_t experts, std::uint32_t columns) {
  return {.x = random_tensor(DType::F32, {tokens, used, columns}, 1),
          .scores = random_tensor(DType::F32, {tokens, experts}, 2),
          .ids = random_tensor(DType::I32, {tokens, used}, 3, -1, experts + 1),
          .residual = random_tensor(DType::F32, {tokens, columns}, 4)};
}

std::vector<double> formula(const Inputs& inputs) {
  const Shape& shape = inputs.x.operand.shape;
  const std::size_t used = shape[1];
  const std::size_t experts = inputs.scores.operand.shape[1];
  const std::vector<double> x = values_of(inputs.x);
  const std::vector<double> scores = values_of(inputs.scores);
  const std::vector<double> ids = values_of(inputs.ids);
  std::vector<double> result = values_of(inputs.residual);
  for (std::size_t token = 0; token < shape[0]; ++token) {
    std::vector<double> powers(used);
    double sum = 0;
    for (std::size_t j = 0; j < used; ++j) {
      const double id = ids[token * used + j];
      const bool exists = id >= 0 && id < static_cast<double>(experts);
      const double score = exists ? scores[token * experts + static_cast<std::size_t>(id)] : 0;
      sum += powers[j] = std::exp(static_cast<double>(inputs.scale) * score);
    }
    for (std::size_t j = 0; j < used; ++j)
      for (std::size_t column = 0; column < shape[2]; ++column)
        result[token * shape[2] + column] += powers[j] / sum * x[(token * used + j) * shape[2] + column];
  }
  return result;
}

void expect_formula(const Inputs& inputs) {
  for (const std::uint32_t threads : {1U, 3U}) {
    const KernelResult result = run_kernel(scalar(), inputs.use(), threads);
    ASSERT_EQ(result.declined, "") << inputs.use().text();
    EXPECT_LE(nmse(values_of(result.output), formula(inputs)), 1e-13) << inputs.use().text();
  }
  for_each_simd_target([&] {
    for (const std::uint32_t threads : {1U, 3U}) {
      const KernelResult result = run_kernel(simd(), inputs.use(), threads);
      ASSERT_EQ(result.declined, "") << inputs.use().text();
      EXPECT_LE(nmse(values_of(result.output), formula(inputs)), 1e-12) << inputs.use().text();
    }
  });
}

TEST(ExpertsSum, RowsAreWeightedByTheirScores) {
  expect_formula(inputs_of(1, 8, 64, 2048));
  expect_formula(inputs_of(5, 3, 4, 33));
  expect_formula(inputs_of(4, 1, 1, 1));
  expect_formula(inputs_of(0, 2, 3, 4));
  Inputs inputs = inputs_of(7, 9, 70, 12);
  inputs.scale = 0.125F;
  inputs.scores = permuted(random_tensor(DType::F32, {70, 7}, 2), {1, 0});
  inputs.x = permuted(random_tensor(DType::F32, {12, 9, 7}, 1), {2, 1, 0});
  inputs.ids = permuted(random_tensor(DType::I32, {9, 7}, 3, 0, 70), {1, 0});
  inputs.residual = permuted(random_tensor(DType::F32, {12, 7}, 4), {1, 0});
  expect_formula(inputs);
}

TEST(ExpertsSum, LargeScoresDoNotOverflow) {
  Inputs inputs = inputs_of(1, 2, 2, 4);
  inputs.scores = tensor_of(DType::F32, {1, 2}, {1e30, -1e30});
  inputs.ids = tensor_of(DType::I32, {1, 2}, {0, 1});
  const std::vector<double> x = values_of(inputs.x);
  const std::vector<double> residual = values_of(inputs.residual);
  const std::vector<double> result = values_of(run_kernel(scalar(), inputs.use()).output);
  for (std::size_t column = 0; column < 4; ++column) EXPECT_NEAR(result[column], x[column] + residual[column], 1e-6);
}

TEST(ExpertsSum, ScoresOfMinusInfinityGiveTheResidual) {
  Inputs inputs = inputs_of(1, 2, 2, 4);
  inputs.scores = tensor_of(DType::F32, {1, 2}, {-kInfinity, -kInfinity});
  inputs.ids = tensor_of(DType::I32, {1, 2}, {0, 1});
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    EXPECT_EQ(values_of(run_kernel(*kernel, inputs.use()).output), values_of(inputs.residual));
}

TEST(ExpertsSum, TokensPastTheValidOnesAreLeftAlone) {
  Inputs inputs = inputs_of(6, 2, 5, 20);
  inputs.x = bucket(inputs.x);
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t tokens : {0U, 1U, 6U}) {
      const KernelResult result = run_kernel(*kernel, inputs.use(tokens), 2);
      EXPECT_TRUE(rows_are_untouched(result.output, tokens));
      std::vector<double> expected = formula(inputs);
      expected.resize(std::size_t{tokens} * 20);
      EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-12);
    }
}

TEST(ExpertsSum, OperandsThatDoNotFitAreErrors) {
  const Operand x = Operand::contiguous(DType::F32, Shape{4, 2, 64});
  const Operand scores = Operand::contiguous(DType::F32, Shape{4, 5});
  const Operand ids = Operand::contiguous(DType::I32, Shape{4, 3});
  const Operand residual = Operand::contiguous(DType::F32, Shape{4, 64});
  const Operand* inputs[] = {&x, &scores, &ids, &residual};
  const auto result = infer(Op::experts_sum, inputs, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "experts_sum: ids must be I32[4, 2], is I32[4, 3]");
}

}  // namespace
}  // namespace shunt::test::experts_sum_tests
