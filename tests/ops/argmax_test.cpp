#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::argmax_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("argmax").scalar; }
const CpuKernel& simd() { return *cpu_family("argmax").simd; }

std::vector<double> formula(const Tensor& x) {
  const std::vector<double> values = values_of(x);
  const std::size_t columns = x.operand.shape.columns();
  std::vector<double> places;
  for (std::size_t row = 0; row < x.operand.shape.rows(); ++row) {
    std::size_t best = columns;
    for (std::size_t i = 0; i < columns; ++i) {
      const double value = values[row * columns + i];
      if (!std::isnan(value) && (best == columns || value > values[row * columns + best])) best = i;
    }
    places.push_back(best == columns ? 0 : static_cast<double>(best));
  }
  return places;
}

void expect_formula(const Tensor& x) {
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (std::uint32_t threads = 1; threads <= 3; ++threads) {
      const KernelCase use{Op::argmax, {&x}};
      const KernelResult result = run_kernel(*kernel, use, threads);
      ASSERT_EQ(result.declined, "") << use.text();
      EXPECT_EQ(values_of(result.output), formula(x)) << use.text() << " threads " << threads;
    }
}

TEST(Argmax, FindsTheFirstOfTheLargest) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      for (const Shape& shape : {Shape{1}, Shape{5}, Shape{3, 1}, Shape{4, 33}, Shape{2, 3, 100}, Shape{1, 32003},
                                 Shape{2, 4096}, Shape{0, 3}})
        for (std::uint64_t seed = 1; seed <= 3; ++seed) expect_formula(random_tensor(dtype, shape, seed));
      expect_formula(permuted(random_tensor(dtype, {50, 4}, 4), {1, 0}));
      expect_formula(sliced(random_tensor(dtype, {4, 60}, 5), 1, 7, 45));
    }
  });
}

TEST(Argmax, TiesGoToTheFirstAndNanNeverWins) {
  const std::vector<std::vector<double>> rows = {{1, 2, 2, 0},
                                                 {kNan, 1, kNan, 1},
                                                 {kNan, -kInfinity, -kInfinity, kNan},
                                                 {kNan, kNan, kNan, kNan},
                                                 {-kInfinity, -kInfinity, -kInfinity, -kInfinity},
                                                 {0, kInfinity, kNan, kInfinity}};
  for_each_simd_target([&] {
    for (const std::vector<double>& row : rows)
      for (const std::uint32_t repeats : {1U, 7U, 2000U}) {
        std::vector<double> values;
        for (std::uint32_t i = 0; i < repeats; ++i) values.insert(values.end(), row.begin(), row.end());
        expect_formula(tensor_of(DType::F32, {1, 4 * repeats}, values));
      }
  });
}

TEST(Argmax, RowsPastTheValidOnesAreLeftAlone) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t columns : {10U, 5000U})
        for (const std::uint32_t tokens : {0U, 1U, 2U}) {
          const Tensor x = bucket(random_tensor(DType::F32, {2, columns}, 6));
          const KernelResult result = run_kernel(*kernel, {Op::argmax, {&x}, {}, {.tokens = tokens}}, 3);
          EXPECT_TRUE(rows_are_untouched(result.output, tokens));
          std::vector<double> expected = formula(x);
          expected.resize(tokens);
          EXPECT_EQ(leading_values(result.output, tokens), expected);
        }
  });
}

}  // namespace
}  // namespace shunt::test::argmax_tests
