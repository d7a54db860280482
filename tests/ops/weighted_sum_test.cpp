#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::weighted_sum_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("weighted_sum").scalar; }
const CpuKernel& simd() { return *cpu_family("weighted_sum").simd; }

std::vector<double> formula(const Tensor& x, const Tensor& weights) {
  const std::vector<double> values = values_of(x);
  const std::vector<double> factors = values_of(weights);
  const std::size_t columns = x.operand.shape.columns();
  const std::size_t count = weights.operand.shape.columns();
  const std::size_t rows = weights.operand.shape.rows();
  std::vector<double> result(rows * columns);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t j = 0; j < count; ++j)
      for (std::size_t column = 0; column < columns; ++column)
        result[row * columns + column] += factors[row * count + j] * values[(row * count + j) * columns + column];
  return result;
}

void expect_formula(const Tensor& x, const Tensor& weights) {
  const DType dtype = x.operand.dtype;
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t threads : {1U, 3U}) {
      const KernelCase use{Op::weighted_sum, {&x, &weights}};
      const KernelResult result = run_kernel(*kernel, use, threads);
      ASSERT_EQ(result.declined, "") << use.text();
      const double tolerance = dtype == DType::F32 ? 1e-12 : dtype == DType::F16 ? 1e-6 : 2e-5;
      EXPECT_LE(nmse(values_of(result.output), formula(x, weights)), tolerance) << use.text();
    }
}

Tensor numbers(DType dtype, const Shape& shape, std::uint64_t seed) {
  return random_tensor(dtype, shape, seed, 0.25, 2);
}

TEST(WeightedSum, RowsAreAddedWithTheirWeights) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      expect_formula(numbers(dtype, {3, 7}, 1), numbers(DType::F32, {3}, 2));
      expect_formula(numbers(dtype, {1, 8, 2048}, 1), numbers(DType::F32, {1, 8}, 2));
      expect_formula(numbers(dtype, {5, 4, 33}, 1), numbers(DType::F16, {5, 4}, 2));
      expect_formula(numbers(dtype, {2, 3, 4, 600}, 1), numbers(DType::BF16, {2, 3, 4}, 2));
      expect_formula(numbers(dtype, {4, 1, 1}, 1), numbers(DType::F32, {4, 1}, 2));
      expect_formula(numbers(dtype, {0, 2, 3}, 1), numbers(DType::F32, {0, 2}, 2));
      expect_formula(permuted(numbers(dtype, {33, 4, 5}, 1), {2, 1, 0}),
                     permuted(numbers(DType::F32, {4, 5}, 2), {1, 0}));
    }
  });
}

TEST(WeightedSum, NothingToAddIsZero) {
  const Tensor x = tensor_of(DType::F32, {2, 0, 5});
  const Tensor weights = tensor_of(DType::F32, {2, 0});
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const double value : values_of(run_kernel(*kernel, {Op::weighted_sum, {&x, &weights}}).output))
        EXPECT_EQ(value, 0);
  });
}

TEST(WeightedSum, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(numbers(DType::F32, {6, 2, 20}, 9));
  const Tensor weights = bucket(numbers(DType::F32, {6, 2}, 8));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 6U}) {
        const KernelResult result = run_kernel(*kernel, {Op::weighted_sum, {&x, &weights}, {}, {.tokens = tokens}}, 2);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        std::vector<double> expected = formula(x, weights);
        expected.resize(std::size_t{tokens} * 20);
        EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-12);
      }
  });
}

TEST(WeightedSum, ABucketIsNotSummedOver) {
  const Operand x = Operand::contiguous(DType::F32, Shape{4, 8}, TensorKind::value, Extent::tokens);
  const Operand weights = Operand::contiguous(DType::F32, Shape{4});
  const Operand* inputs[] = {&x, &weights};
  const auto result = infer(Op::weighted_sum, inputs, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "weighted_sum: axis 0 of x F32[4, 8] is a bucket and cannot be summed over");
}

}  // namespace
}  // namespace shunt::test::weighted_sum_tests
