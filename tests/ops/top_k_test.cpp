#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::top_k_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("top_k").scalar; }
const CpuKernel& simd() { return *cpu_family("top_k").simd; }

// The k largest elements of each row: their indices, or pairs of element and index.
std::vector<double> formula(Op op, const Tensor& x, std::uint32_t k) {
  const bool with_values = op == Op::top_values;
  const std::vector<double> values = values_of(x);
  const std::size_t columns = x.operand.shape.columns();
  std::vector<double> result;
  for (std::size_t row = 0; row < x.operand.shape.rows(); ++row) {
    const auto at = [&](std::size_t column) { return values[row * columns + column]; };
    std::vector<std::size_t> order(columns);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      if (std::isnan(at(a)) != std::isnan(at(b))) return std::isnan(at(with_values ? a : b));
      return at(a) > at(b);
    });
    for (std::uint32_t j = 0; j < k; ++j) {
      if (with_values) result.push_back(at(order[j]));
      result.push_back(static_cast<double>(order[j]));
    }
  }
  return result;
}

bool are_same(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void expect_formula(const Tensor& x, std::uint32_t k, Op op = Op::top_k) {
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t threads : {1U, 3U}) {
      const KernelCase use{op, {&x}, {{Attr::k, k}}};
      const KernelResult result = run_kernel(*kernel, use, threads);
      ASSERT_EQ(result.declined, "") << use.text();
      EXPECT_TRUE(are_same(values_of(result.output), formula(op, x, k)))
          << use.text() << " k " << k << " threads " << threads;
    }
}

void expect_values(const Tensor& x, std::uint32_t k) { expect_formula(x, k, Op::top_values); }

TEST(TopK, IndicesComeInTheOrderOfTheirElements) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      for (const Shape& shape : {Shape{1}, Shape{40}, Shape{3, 1}, Shape{4, 33}, Shape{2, 3, 128}, Shape{0, 3}})
        for (const std::uint32_t k : {1U, 8U, 1000U})
          expect_formula(random_tensor(dtype, shape, k), std::min(k, shape.columns()));
      expect_formula(permuted(random_tensor(dtype, {50, 4}, 4), {1, 0}), 6);
      expect_formula(sliced(random_tensor(dtype, {4, 60}, 5), 1, 7, 45), 45);
    }
  });
}

TEST(TopK, OfEqualsTheLowerIndexIsFirstAndNanIsLast) {
  const std::vector<std::vector<double>> rows = {{1, 2, 2, 0},
                                                 {kNan, 1, kNan, 1},
                                                 {kNan, -kInfinity, -kInfinity, kNan},
                                                 {kNan, kNan, kNan, kNan},
                                                 {0, kInfinity, kNan, -0.0}};
  for_each_simd_target([&] {
    for (const std::vector<double>& row : rows)
      for (const std::uint32_t repeats : {1U, 7U, 30U}) {
        std::vector<double> values;
        for (std::uint32_t i = 0; i < repeats; ++i) values.insert(values.end(), row.begin(), row.end());
        const Tensor x = tensor_of(DType::F32, {static_cast<std::uint32_t>(values.size())}, values);
        for (const std::uint32_t k : {1U, 3U, static_cast<std::uint32_t>(values.size())}) expect_formula(x, k);
      }
  });
}

TEST(TopK, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(random_tensor(DType::F32, {6, 20}, 9));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 6U}) {
        const KernelResult result = run_kernel(*kernel, {Op::top_k, {&x}, {{Attr::k, 4U}}, {.tokens = tokens}}, 2);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        std::vector<double> expected = formula(Op::top_k, x, 4);
        expected.resize(std::size_t{tokens} * 4);
        EXPECT_EQ(leading_values(result.output, tokens), expected);
      }
  });
}

TEST(TopValues, AreElementsAndTheirIndices) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      for (const Shape& shape : {Shape{1}, Shape{40}, Shape{4, 33}, Shape{2, 3, 128}, Shape{0, 3}})
        for (const std::uint32_t k : {1U, 8U, 1000U})
          expect_values(random_tensor(dtype, shape, k), std::min(k, shape.columns()));
      expect_values(permuted(random_tensor(dtype, {50, 4}, 4), {1, 0}), 6);
    }
  });
}

TEST(TopValues, OfLongRowsAreFoundByAllThreads) {
  for_each_simd_target([] {
    for (const DType dtype : {DType::F32, DType::F16})
      for (const std::uint32_t k : {1U, 40U, 64U}) expect_values(random_tensor(dtype, {2, 9001}, k), k);
  });
}

TEST(TopValues, BeginWithNan) {
  std::vector<double> values(700, 1);
  values[699] = kNan;
  values[500] = -kInfinity;
  values[300] = kNan;
  values[0] = 2;
  values[640] = kInfinity;
  values[650] = -0.0;
  for_each_simd_target([&] {
    for (const std::uint32_t k : {1U, 2U, 3U, 5U, 700U}) expect_values(tensor_of(DType::F32, {700}, values), k);
    expect_values(tensor_of(DType::F32, {700}, std::vector<double>(700, kNan)), 70);
    expect_values(tensor_of(DType::F32, {700}, std::vector<double>(700, -kInfinity)), 70);
  });
}

TEST(TopValues, OfRowsWhoseIndicesF32LacksAreAnError) {
  const Operand x = Operand::contiguous(DType::F16, Shape{1, (1U << 24U) + 1});
  const Operand* inputs[] = {&x};
  const auto result = infer(Op::top_values, inputs, {{Attr::k, 1U}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "top_values: F16[1, 16777217] has more than 16777216 columns, and F32 not all of their indices");
}

TEST(TopK, MoreThanThereAreIsAnError) {
  const Operand x = Operand::contiguous(DType::F32, Shape{2, 4});
  const Operand* inputs[] = {&x};
  for (const std::uint32_t k : {0U, 5U}) {
    const auto result = infer(Op::top_k, inputs, {{Attr::k, k}});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, "top_k: k " + std::to_string(k) + " must be from 1 to the columns of F32[2, 4]");
  }
}

}  // namespace
}  // namespace shunt::test::top_k_tests
