#include "ops/kernel_case.h"

namespace shunt::test::concat_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("concat").scalar; }
const CpuKernel& simd() { return *cpu_family("concat").simd; }

// Interleaves runs of both: everything within the axis moves as one block.
std::vector<double> formula(const Tensor& a, const Tensor& b, std::uint32_t axis) {
  const auto run_of = [&](const Shape& shape) {
    std::size_t run = 1;
    for (std::size_t i = axis; i < shape.rank(); ++i) run *= shape[i];
    return run;
  };
  const std::vector<double> first = values_of(a);
  const std::vector<double> second = values_of(b);
  const std::size_t first_run = run_of(a.operand.shape);
  const std::size_t second_run = run_of(b.operand.shape);
  std::vector<double> result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < first.size() || j < second.size()) {
    for (std::size_t n = 0; n < first_run; ++n) result.push_back(first[i++]);
    for (std::size_t n = 0; n < second_run; ++n) result.push_back(second[j++]);
  }
  return result;
}

void expect_formula(const Tensor& a, const Tensor& b, std::uint32_t axis) {
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t threads : {1U, 3U}) {
      const KernelCase use{Op::concat, {&a, &b}, {{Attr::axis, axis}}};
      const KernelResult result = run_kernel(*kernel, use, threads);
      ASSERT_EQ(result.declined, "") << use.text();
      EXPECT_EQ(values_of(result.output), formula(a, b, axis)) << use.text() << " axis " << axis;
    }
}

TEST(Concat, OneStandsBehindTheOther) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8, DType::U32}) {
    const auto tensor = [&](const Shape& shape, std::uint64_t seed) {
      return random_tensor(dtype, shape, seed, -1000, 1000);
    };
    expect_formula(tensor({4}, 1), tensor({3}, 2), 0);
    expect_formula(tensor({2, 5}, 1), tensor({3, 5}, 2), 0);
    expect_formula(tensor({3, 4}, 1), tensor({3, 9}, 2), 1);
    for (std::uint32_t axis = 0; axis < 4; ++axis) {
      Shape shape{2, 3, 4, 5};
      shape.set(axis, 6);
      expect_formula(tensor({2, 3, 4, 5}, 1), tensor(shape, 2), axis);
    }
    expect_formula(tensor({3, 0}, 1), tensor({3, 2}, 2), 1);
    expect_formula(permuted(tensor({5, 3}, 1), {1, 0}), sliced(tensor({3, 9}, 2), 1, 2, 4), 1);
  }
}

TEST(Concat, RowsPastTheValidOnesAreLeftAlone) {
  const Tensor a = bucket(random_tensor(DType::F32, {6, 2, 5}, 1));
  const Tensor b = bucket(random_tensor(DType::F32, {6, 3, 5}, 2));
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    for (const std::uint32_t tokens : {0U, 1U, 6U}) {
      const KernelResult result =
          run_kernel(*kernel, {Op::concat, {&a, &b}, {{Attr::axis, 1U}}, {.tokens = tokens}}, 2);
      EXPECT_TRUE(rows_are_untouched(result.output, tokens));
      std::vector<double> expected = formula(a, b, 1);
      expected.resize(std::size_t{tokens} * 25);
      EXPECT_EQ(leading_values(result.output, tokens), expected);
    }
}

TEST(Concat, WhatDoesNotFitIsAnError) {
  const Operand a = Operand::contiguous(DType::F32, Shape{4, 8}, TensorKind::value, Extent::tokens);
  const Operand b = Operand::contiguous(DType::F32, Shape{4, 8}, TensorKind::value, Extent::tokens);
  const Operand c = Operand::contiguous(DType::F32, Shape{4, 9});
  const Operand* buckets[] = {&a, &b};
  const Operand* uneven[] = {&b, &c};
  auto result = infer(Op::concat, buckets, {{Attr::axis, 0U}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "concat: axis 0 of the first input varies with the number of tokens; nothing can follow it");
  result = infer(Op::concat, uneven, {{Attr::axis, 0U}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "concat: a F32[4, 8] and b F32[4, 9] differ in more than axis 0");
  EXPECT_FALSE(infer(Op::concat, uneven, {{Attr::axis, 2U}}).has_value());
}

}  // namespace
}  // namespace shunt::test::concat_tests
