#include <gtest/gtest.h>

#include "ops/each_target.h"
#include "ops/kernel_case.h"
#include "ops/quantize/encode.h"

namespace shunt::test::quantize_tests {
namespace {

const CpuFamily& family() { return cpu_family("quantize"); }

std::vector<DType> of_kind(DTypeKind kind) {
  std::vector<DType> list;
  for (std::size_t i = 0; i < dtypes().size(); ++i)
    if (dtypes()[i].kind == kind) list.push_back(static_cast<DType>(i));
  return list;
}

Attributes to(DType dtype) { return {{Attr::to, dtype}}; }

std::vector<std::byte> encoded(DType dtype, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  std::vector<std::byte> bytes(floats.size() / info_of(dtype).block_elements * info_of(dtype).block_bytes);
  encode_row(dtype, floats.data(), floats.size(), bytes.data());
  return bytes;
}

Tensor quantized_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  Tensor tensor = tensor_of(dtype, shape);
  tensor.bytes = encoded(dtype, values_of(random_tensor(DType::F32, shape, seed)));
  return tensor;
}

std::string refusal(Op op, const Tensor& x, DType target) {
  const Operand* inputs[] = {&x.operand};
  auto result = infer(op, inputs, to(target));
  return result ? "" : result.error().message;
}

TEST(Quantize, BlocksAreThoseOfTheEncoder) {
  for (const DType from : of_kind(DTypeKind::floating)) {
    for (const DType target : of_kind(DTypeKind::quantized)) {
      const Tensor x = random_tensor(from, Shape{3, 5, 256}, 7);
      const KernelCase use{.op = Op::quantize, .inputs = {&x}, .attributes = to(target)};
      const auto expected = encoded(target, values_of(x));
      for (const std::uint32_t threads : {1U, 3U}) {
        EXPECT_EQ(run_kernel(*family().scalar, use, threads).output.bytes, expected) << use.text();
        for_each_simd_target(
            [&] { EXPECT_EQ(run_kernel(*family().simd, use, threads).output.bytes, expected) << use.text(); });
      }
    }
  }
}

TEST(Quantize, ValuesAreThoseOfTheDecoder) {
  for (const DType from : of_kind(DTypeKind::quantized)) {
    const Tensor x = quantized_tensor(from, Shape{7, 1280}, 11);
    std::vector<float> exact(x.operand.shape.elements());
    decode_row(from, x.bytes.data(), exact.size(), exact.data());
    for (const DType target : of_kind(DTypeKind::floating)) {
      const KernelCase use{.op = Op::dequantize, .inputs = {&x}, .attributes = to(target)};
      Tensor expected = tensor_of(target, x.operand.shape);
      expected.bytes = encoded(target, std::vector<double>(exact.begin(), exact.end()));
      // Compared as numbers: a zero may have either sign.
      const auto values = values_of(expected);
      for (const std::uint32_t threads : {1U, 4U}) {
        EXPECT_EQ(values_of(run_kernel(*family().scalar, use, threads).output), values) << use.text();
        for_each_simd_target(
            [&] { EXPECT_EQ(values_of(run_kernel(*family().simd, use, threads).output), values) << use.text(); });
      }
    }
  }
}

TEST(Quantize, ViewsWithWholeRowsAreTaken) {
  const Tensor whole = random_tensor(DType::F32, Shape{4, 6, 512}, 3);
  const Tensor view = sliced(permuted(whole, Shape{1, 0, 2}), 2, 256, 256);
  const KernelCase use{.op = Op::quantize, .inputs = {&view}, .attributes = to(DType::Q4_0)};
  const auto expected = encoded(DType::Q4_0, values_of(view));
  EXPECT_EQ(run_kernel(*family().scalar, use, 2).output.bytes, expected);
  EXPECT_EQ(run_kernel(*family().simd, use, 2).output.bytes, expected);
}

TEST(Quantize, OnlyValidRowsOfABucketAreWritten) {
  const Tensor x = bucket(random_tensor(DType::F32, Shape{8, 64}, 5));
  for (const std::uint32_t tokens : {0U, 1U, 5U, 8U}) {
    const KernelCase use{
        .op = Op::quantize, .inputs = {&x}, .attributes = to(DType::Q8_0), .parameters = {.tokens = tokens}};
    for (const CpuKernel* kernel : {family().scalar, family().simd}) {
      const KernelResult result = run_kernel(*kernel, use, 3);
      const auto expected = encoded(DType::Q8_0, values_of(x));
      EXPECT_TRUE(std::equal(result.output.bytes.begin(), result.output.bytes.begin() + std::ptrdiff_t{tokens} * 68,
                             expected.begin()));
      EXPECT_TRUE(rows_are_untouched(result.output, tokens)) << use.text();
    }
  }
}

TEST(ConversionRules, EachOpTakesItsOwnDtypes) {
  const Tensor floats = random_tensor(DType::F32, Shape{2, 256}, 1);
  const Tensor blocks = quantized_tensor(DType::Q4_K, Shape{2, 256}, 1);
  const Tensor bytes = tensor_of(DType::I8, Shape{2, 256});
  EXPECT_EQ(refusal(Op::copy, floats, DType::I32), "");
  EXPECT_EQ(refusal(Op::copy, bytes, DType::F32), "");
  EXPECT_NE(refusal(Op::copy, floats, DType::Q8_0), "");
  EXPECT_NE(refusal(Op::copy, blocks, DType::F32), "");
  EXPECT_EQ(refusal(Op::quantize, floats, DType::Q8_0), "");
  EXPECT_EQ(refusal(Op::quantize, floats, DType::F16), "quantize: `to` must be a quantized dtype, is F16");
  EXPECT_NE(refusal(Op::quantize, blocks, DType::Q8_0), "");
  EXPECT_NE(refusal(Op::quantize, bytes, DType::Q8_0), "");
  EXPECT_EQ(refusal(Op::dequantize, blocks, DType::BF16), "");
  EXPECT_EQ(refusal(Op::dequantize, blocks, DType::I32), "dequantize: `to` must be a floating dtype, is I32");
  EXPECT_EQ(refusal(Op::dequantize, floats, DType::F32), "dequantize: x must be of a quantized dtype, is F32[2, 256]");
}

TEST(ConversionRules, RowsMustHoldWholeBlocks) {
  EXPECT_NE(refusal(Op::quantize, random_tensor(DType::F32, Shape{2, 100}, 1), DType::Q8_0), "");
  const Tensor turned = permuted(random_tensor(DType::F32, Shape{32, 64}, 1), Shape{1, 0});
  EXPECT_NE(refusal(Op::quantize, turned, DType::Q8_0).find("rows are not contiguous; copy it first"),
            std::string::npos);
  const Tensor column = bucket(random_tensor(DType::F32, Shape{64}, 1));
  EXPECT_NE(refusal(Op::quantize, column, DType::Q8_0).find("must have rows"), std::string::npos);
}

}  // namespace
}  // namespace shunt::test::quantize_tests
