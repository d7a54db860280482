#include "ops/kernel_case.h"

namespace shunt::test::take_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("take").scalar; }
const CpuKernel& simd() { return *cpu_family("take").simd; }

std::vector<double> formula(const Tensor& x, const Tensor& ids) {
  const std::vector<double> values = values_of(x);
  const std::vector<double> places = values_of(ids);
  const std::size_t columns = x.operand.shape.columns();
  const std::size_t count = ids.operand.shape.columns();
  std::vector<double> result;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool there = places[i] >= 0 && places[i] < static_cast<double>(columns);
    result.push_back(there ? values[i / count * columns + static_cast<std::size_t>(places[i])] : 0);
  }
  return result;
}

void expect_formula(const Tensor& x, const Tensor& ids) {
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t threads : {1U, 3U}) {
      const KernelCase use{Op::take, {&x, &ids}};
      const KernelResult result = run_kernel(*kernel, use, threads);
      ASSERT_EQ(result.declined, "") << use.text();
      EXPECT_EQ(values_of(result.output), formula(x, ids)) << use.text();
    }
}

TEST(Take, ElementsComeByTheIndicesOfTheirRow) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    // Some indices are before and after the row.
    expect_formula(random_tensor(dtype, {9}, 1), random_tensor(DType::I32, {4}, 2, -2, 12));
    expect_formula(random_tensor(dtype, {5, 7}, 1), random_tensor(DType::I32, {5, 3}, 2, -2, 9));
    expect_formula(random_tensor(dtype, {2, 3, 2, 5}, 1), random_tensor(DType::I32, {2, 3, 2, 8}, 2, 0, 5));
    expect_formula(permuted(random_tensor(dtype, {7, 5}, 1), {1, 0}),
                   permuted(random_tensor(DType::I32, {3, 5}, 2, -2, 9), {1, 0}));
    expect_formula(random_tensor(dtype, {5, 7}, 1), random_tensor(DType::I32, {5, 0}, 2));
  }
}

TEST(Take, IndicesOfTheWholeRangeOfI32AreNotThere) {
  const Tensor x = random_tensor(DType::F32, {1, 3}, 1);
  expect_formula(x, tensor_of(DType::I32, {1, 4}, {-2147483648.0, 2147483647.0, 3, 2}));
}

TEST(Take, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor x = bucket(random_tensor(DType::F32, {6, 20}, 9));
  const Tensor ids = random_tensor(DType::I32, {6, 4}, 3, 0, 20);
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t tokens : {0U, 1U, 6U}) {
      const KernelResult result = run_kernel(*kernel, {Op::take, {&x, &ids}, {}, {.tokens = tokens}}, 2);
      EXPECT_TRUE(rows_are_untouched(result.output, tokens));
      std::vector<double> expected = formula(x, ids);
      expected.resize(std::size_t{tokens} * 4);
      EXPECT_EQ(leading_values(result.output, tokens), expected);
    }
}

TEST(Take, OtherRowsAreAnError) {
  const Operand x = Operand::contiguous(DType::F32, Shape{2, 4});
  const Operand ids = Operand::contiguous(DType::I32, Shape{3, 4});
  const Operand* inputs[] = {&x, &ids};
  const auto result = infer(Op::take, inputs, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "take: ids I32[3, 4] must have the rows of x F32[2, 4]");
}

}  // namespace
}  // namespace shunt::test::take_tests
