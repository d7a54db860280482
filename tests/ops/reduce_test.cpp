#include <algorithm>
#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::reduce_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("reduce").scalar; }
const CpuKernel& simd() { return *cpu_family("reduce").simd; }

constexpr Op kReductions[] = {Op::reduce_sum, Op::reduce_mean, Op::reduce_max, Op::dot};

// `b` is repeated over the rows of x.
std::vector<double> formula(Op op, const Tensor& x, const Tensor& b) {
  const std::vector<double> values = values_of(x);
  const std::vector<double> others = values_of(b);
  const std::size_t columns = x.operand.shape.columns();
  std::vector<double> result;
  for (std::size_t begin = 0; begin < values.size(); begin += columns) {
    double sum = 0;
    double largest = values[begin];
    for (std::size_t i = begin; i < begin + columns; ++i) {
      sum += op == Op::dot ? values[i] * others[i % others.size()] : values[i];
      largest = std::max(largest, values[i]);
    }
    if (op == Op::reduce_mean) sum /= static_cast<double>(columns);
    result.push_back(op == Op::reduce_max ? largest : sum);
  }
  return result;
}

void expect_formula(const Tensor& x, const Tensor& b) {
  const DType dtype = x.operand.dtype;
  for (const Op op : kReductions)
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t threads : {1U, 3U}) {
        KernelCase use{op, {&x}};
        if (op == Op::dot) use.inputs.push_back(&b);
        const KernelResult result = run_kernel(*kernel, use, threads);
        ASSERT_EQ(result.declined, "") << use.text();
        const double tolerance = dtype == DType::F32 ? info_of(op).tolerance : dtype == DType::F16 ? 1e-6 : 2e-5;
        EXPECT_LE(nmse(values_of(result.output), formula(op, x, b)), tolerance) << use.text();
      }
}

TEST(Reduce, RowsBecomeTheirSumMeanLargestAndProduct) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      for (const Shape& shape :
           {Shape{1}, Shape{7}, Shape{3, 1}, Shape{4, 33}, Shape{2, 3, 2111}, Shape{2, 2, 2, 5}, Shape{0, 4}}) {
        const Tensor x = random_tensor(dtype, shape, 1, 0.25, 2);
        expect_formula(x, random_tensor(DType::F32, shape, 2, 0.25, 2));
        expect_formula(x, random_tensor(DType::BF16, Shape{shape.columns()}, 3, 0.25, 2));
      }
      expect_formula(permuted(random_tensor(dtype, {33, 4}, 4, 0.25, 2), {1, 0}),
                     sliced(random_tensor(DType::F32, {4, 40}, 5, 0.25, 2), 1, 3, 33));
    }
  });
}

TEST(Reduce, TheLargestOfNegativesAndInfinitiesIsFoundAndNanIsKept) {
  struct Row {
    std::vector<double> x;
    double largest;
  };
  const Row rows[] = {
      {{-3, -1, -2}, -1}, {{-kInfinity, -kInfinity, -kInfinity}, -kInfinity}, {{1, kInfinity, -kInfinity}, kInfinity}};
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const Row& row : rows)
        for (const std::uint32_t repeats : {1U, 9U}) {
          std::vector<double> values;
          for (std::uint32_t i = 0; i < repeats; ++i) values.insert(values.end(), row.x.begin(), row.x.end());
          const auto columns = static_cast<std::uint32_t>(values.size());
          Tensor x = tensor_of(DType::F32, {columns}, values);
          EXPECT_EQ(values_of(run_kernel(*kernel, {Op::reduce_max, {&x}}).output)[0], row.largest);
          for (const std::size_t place : {std::size_t{0}, values.size() - 1}) {
            std::vector<double> with_nan = values;
            with_nan[place] = kNan;
            x = tensor_of(DType::F32, {columns}, with_nan);
            for (const Op op : {Op::reduce_max, Op::reduce_sum, Op::reduce_mean})
              EXPECT_TRUE(std::isnan(values_of(run_kernel(*kernel, {op, {&x}}).output)[0])) << name_of(op);
          }
        }
  });
}

TEST(Reduce, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(random_tensor(DType::F32, {6, 20}, 9, 0.25, 2));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 6U}) {
        const KernelResult result = run_kernel(*kernel, {Op::reduce_sum, {&x}, {}, {.tokens = tokens}}, 2);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        std::vector<double> expected = formula(Op::reduce_sum, x, x);
        expected.resize(tokens);
        EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-12);
      }
  });
}

}  // namespace
}  // namespace shunt::test::reduce_tests
