// Random operands of every dtype, what they decode to, and scratch memory for kernels.
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "ops/quantize/blocks.h"

namespace shunt::test {

using Bytes = std::vector<std::byte>;

// The offsets of a block's F16 scales and minima.
inline std::vector<std::size_t> halves_of(DType dtype) {
  switch (dtype) {
    case DType::Q4_1:
      return {offsetof(Q4_1Block, scale), offsetof(Q4_1Block, min)};
    case DType::Q5_1:
      return {offsetof(Q5_1Block, scale), offsetof(Q5_1Block, min)};
    case DType::Q2_K:
      return {offsetof(Q2_KBlock, scale), offsetof(Q2_KBlock, min)};
    case DType::Q3_K:
      return {offsetof(Q3_KBlock, scale)};
    case DType::Q4_K:
      return {offsetof(Q4_KBlock, scale), offsetof(Q4_KBlock, min)};
    case DType::Q5_K:
      return {offsetof(Q5_KBlock, scale), offsetof(Q5_KBlock, min)};
    case DType::Q6_K:
      return {offsetof(Q6_KBlock, scale)};
    case DType::MXFP4:
      return {};
    default:
      return {0};
  }
}

// Returns a number of mean 0 and variance 1, the sum of four uniform ones. Standard distributions take longer than most
// kernels.
inline float nearly_normal(std::mt19937& random) {
  const std::uint64_t two = random();
  const std::uint64_t more = random();
  const std::uint64_t sum = (two & 0xFFFFU) + (two >> 16U) + (more & 0xFFFFU) + (more >> 16U);
  return (static_cast<float>(sum) * 0x1p-16F - 2) * 1.7320508F;
}

// Every element type in its real range; quantized rows are random bytes with finite scales.
inline Bytes random_elements(DType dtype, std::uint64_t elements, std::mt19937& random) {
  const DTypeInfo& info = info_of(dtype);
  Bytes bytes(elements / info.block_elements * info.block_bytes);
  if (info.kind == DTypeKind::floating) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      const float value = nearly_normal(random);
      const std::uint16_t half = dtype == DType::F16 ? f32_to_f16(value) : f32_to_bf16(value);
      if (dtype == DType::F32) std::memcpy(bytes.data() + 4 * i, &value, 4);
      if (dtype != DType::F32) std::memcpy(bytes.data() + 2 * i, &half, 2);
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::vector<std::size_t> halves = halves_of(dtype);
  for (std::size_t block = 0; block < bytes.size(); block += info.block_bytes) {
    for (const std::size_t at : halves) {
      const std::uint16_t scale = f32_to_f16(nearly_normal(random) * 0.01F);
      std::memcpy(bytes.data() + block + at, &scale, 2);
    }
    if (dtype == DType::MXFP4) bytes[block] = static_cast<std::byte>(118 + random() % 4);
  }
  return bytes;
}

inline std::vector<float> decoded(DType dtype, const Bytes& bytes, std::uint64_t elements) {
  std::vector<float> values(elements);
  decode_row(dtype, bytes.data(), elements, values.data());
  return values;
}

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); }
};
using Scratch = std::unique_ptr<std::byte, AlignedDelete>;

// Exactly as large as requested, so that a sanitizer sees any access outside; filled with NaN.
inline Scratch make_scratch(std::uint64_t bytes) {
  Scratch scratch(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64})));
  std::memset(scratch.get(), 0xFF, bytes);
  return scratch;
}

}  // namespace shunt::test
