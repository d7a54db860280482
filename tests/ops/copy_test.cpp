#include <cmath>

#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::copy_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("copy").scalar; }
const CpuKernel& simd() { return *cpu_family("copy").simd; }

constexpr DType kDTypes[] = {DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8, DType::U32};

// Copies element by element, rounding each to `to`.
Tensor formula(const Tensor& x, DType to) {
  const std::vector<double> values = values_of(x);
  Tensor result = tensor_of(to, x.operand.shape);
  for (std::size_t i = 0; i < values.size(); ++i) store_element(to, result.bytes.data(), i, values[i]);
  return result;
}

TEST(Copy, EveryDTypeToEveryOtherFromEveryLayout) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const DType from : kDTypes)
        for (const DType to : kDTypes)
          for (const Tensor& x :
               {random_tensor(from, Shape{}, 1, -90, 90), random_tensor(from, {1}, 1, -90, 90),
                random_tensor(from, {3, 1031}, 2, -90, 90), random_tensor(from, {2, 3, 4, 5}, 3, -90, 90),
                random_tensor(from, {0, 5}, 4), permuted(random_tensor(from, {7, 45}, 5, -90, 90), {1, 0}),
                permuted(random_tensor(from, {2, 3, 4, 33}, 6, -90, 90), {2, 0, 1, 3}),
                sliced(random_tensor(from, {5, 40}, 7, -90, 90), 1, 3, 30),
                sliced(permuted(random_tensor(from, {5, 8}, 8, -90, 90), {1, 0}), 0, 2, 3)})
            for (std::uint32_t threads = 1; threads <= 3; ++threads) {
              const KernelCase use{Op::copy, {&x}, {{Attr::to, to}}};
              const KernelResult result = run_kernel(*kernel, use, threads);
              ASSERT_EQ(result.declined, "") << use.text();
              EXPECT_EQ(result.output.bytes, formula(x, to).bytes) << use.text() << " to " << name_of(to);
            }
  });
}

TEST(Copy, EqualDTypesKeepTheirBits) {
  Tensor x = tensor_of(DType::F16, {64});
  for (std::size_t i = 0; i < 64; ++i) store_as(x.bytes.data(), i, static_cast<std::uint16_t>(0x7C01U + i * 1009));
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      EXPECT_EQ(run_kernel(*kernel, {Op::copy, {&x}, {{Attr::to, DType::F16}}}).output.bytes, x.bytes);
  });
}

TEST(Copy, NumbersOutOfRange) {
  const Tensor x = tensor_of(DType::F32, {6}, {1e30, -1e30, kNan, kInfinity, -2.9, 2.9});
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()}) {
      const auto as = [&](DType to) {
        return values_of(run_kernel(*kernel, {Op::copy, {&x}, {{Attr::to, to}}}).output);
      };
      EXPECT_EQ(as(DType::I32), (std::vector<double>{2147483647, -2147483648.0, 0, 2147483647, -2, 2}));
      EXPECT_EQ(as(DType::U32), (std::vector<double>{4294967295, 0, 0, 4294967295, 0, 2}));
      EXPECT_EQ(as(DType::I8), (std::vector<double>{127, -128, 0, 127, -2, 2}));
      const std::vector<double> halves = as(DType::F16);
      EXPECT_EQ(halves[0], kInfinity);
      EXPECT_EQ(halves[1], -kInfinity);
      EXPECT_TRUE(std::isnan(halves[2]));
    }
  });
}

TEST(Copy, EntriesPastTheValidOnesAreLeftAlone) {
  for_each_simd_target([] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 4U, 6U}) {
        const Tensor x = bucket(random_tensor(DType::F32, {6, 3, 7}, 1));
        const KernelResult result =
            run_kernel(*kernel, {Op::copy, {&x}, {{Attr::to, DType::BF16}}, {.tokens = tokens}}, 3);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        std::vector<double> expected = values_of(formula(x, DType::BF16));
        expected.resize(expected.size() / 6 * tokens);
        EXPECT_EQ(leading_values(result.output, tokens), expected);
      }
  });
}

TEST(Copy, QuantizedOperandsAreDeclined) {
  const Tensor x = tensor_of(DType::Q8_0, {2, 64});
  const Operand* inputs[] = {&x.operand};
  auto result = infer(Op::copy, inputs, {{Attr::to, DType::F32}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "copy: converts between dtypes that are not quantized, not Q8_0[2, 64] to F32; quantize and dequantize do");
}

}  // namespace
}  // namespace shunt::test::copy_tests
