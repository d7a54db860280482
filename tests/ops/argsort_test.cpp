#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::argsort_tests {
namespace {

std::vector<double> formula(const Tensor& x) {
  const std::vector<double> values = values_of(x);
  const std::size_t columns = x.operand.shape.columns();
  std::vector<double> result;
  for (std::size_t row = 0; row < x.operand.shape.rows(); ++row) {
    std::vector<std::size_t> order(columns);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const double first = values[row * columns + a];
      const double second = values[row * columns + b];
      return first < second || (std::isnan(second) && !std::isnan(first));
    });
    result.insert(result.end(), order.begin(), order.end());
  }
  return result;
}

void expect_formula(const Tensor& x) {
  for (const CpuKernel* kernel : {cpu_family("argsort").scalar, cpu_family("argsort").simd})
    for (const std::uint32_t threads : {1U, 3U}) {
      const KernelCase use{Op::argsort, {&x}, {}};
      const KernelResult result = run_kernel(*kernel, use, threads);
      ASSERT_EQ(result.declined, "") << use.text();
      EXPECT_EQ(values_of(result.output), formula(x)) << use.text() << " threads " << threads;
    }
}

TEST(Argsort, IndicesSortEachRow) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      for (const Shape& shape : {Shape{1}, Shape{40}, Shape{3, 1}, Shape{4, 33}, Shape{2, 3, 128}, Shape{0, 3}})
        expect_formula(random_tensor(dtype, shape, shape.columns()));
      expect_formula(permuted(random_tensor(dtype, {50, 4}, 4), {1, 0}));
      expect_formula(sliced(random_tensor(dtype, {4, 60}, 5), 1, 7, 45));
    }
  });
}

TEST(Argsort, OfEqualsTheLowerIndexIsFirstAndNanIsLast) {
  const std::vector<std::vector<double>> rows = {{1, 2, 2, 0},
                                                 {kNan, 1, kNan, 1},
                                                 {kNan, -kInfinity, kInfinity, kNan},
                                                 {kNan, kNan, kNan, kNan},
                                                 {0, kInfinity, kNan, -0.0}};
  for_each_simd_target([&] {
    for (const std::vector<double>& row : rows)
      expect_formula(tensor_of(DType::F32, {1, static_cast<std::uint32_t>(row.size())}, row));
  });
}

}  // namespace
}  // namespace shunt::test::argsort_tests
