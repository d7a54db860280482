// How elements are stored: one plain-data block per floating or quantized row of dtypes.def, the conversions between
// F32 and the 16-bit types, and exact scalar decoders.
//
// Formats: the block types of GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the block
// structs of ggml's ggml-common.h), little endian; MXFP4 by the OCP Microscaling Formats specification 1.0. Decoders
// are exact: every product of scale and quant fits the 24 bits of a float; only adding or subtracting a minimum
// rounds.
// Pure functions of their arguments; safe from any thread. Rows need no alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "shunt/tensor.h"

namespace shunt {

static_assert(std::endian::native == std::endian::little, "blocks are read in place, as the file stores them");

struct F32Block {
  float value;
};
struct F16Block {
  std::uint16_t bits;
};
struct BF16Block {
  std::uint16_t bits;
};

// 32 elements scale * (q - 8); byte j holds elements j (low nibble) and j + 16.
struct Q4_0Block {
  std::uint16_t scale;  // F16
  std::uint8_t quants[16];
};

// 32 elements scale * q + min; nibbles as in Q4_0.
struct Q4_1Block {
  std::uint16_t scale;  // F16
  std::uint16_t min;    // F16
  std::uint8_t quants[16];
};

// 32 elements scale * (q - 16); nibbles as in Q4_0. The fifth bit of element j is bit j of high_bits, read as one
// little-endian number.
struct Q5_0Block {
  std::uint16_t scale;  // F16
  std::uint8_t high_bits[4];
  std::uint8_t quants[16];
};

// 32 elements scale * q + min; quants as in Q5_0.
struct Q5_1Block {
  std::uint16_t scale;  // F16
  std::uint16_t min;    // F16
  std::uint8_t high_bits[4];
  std::uint8_t quants[16];
};

// 32 elements scale * q.
struct Q8_0Block {
  std::uint16_t scale;  // F16
  std::int8_t quants[32];
};

// 256 elements in 16 groups of 16: scale * s * q - min * m, where group_scales[group] holds s (low nibble) and m.
// Byte 32 h + l of the quants holds elements l, l + 32, l + 64, l + 96 of half h, from the lowest bits up.
struct Q2_KBlock {
  std::uint8_t group_scales[16];
  std::uint8_t quants[64];
  std::uint16_t scale;  // F16
  std::uint16_t min;    // F16
};

// 256 elements in 16 groups of 16: scale * (s - 32) * (q - 4). The low two bits of q are stored as in Q2_K; the third
// bit of element l + 32 p is bit p of high_bits[l]. See q3_group_scale for s.
struct Q3_KBlock {
  std::uint8_t high_bits[32];
  std::uint8_t quants[64];
  std::uint8_t group_scales[12];
  std::uint16_t scale;  // F16
};

// 256 elements in 8 groups of 32: scale * group_scale * q - min * group_min.
// Byte 32 p + l holds element l of groups 2 p (low nibble) and 2 p + 1; see k_group for group_scales.
struct Q4_KBlock {
  std::uint16_t scale;  // F16
  std::uint16_t min;    // F16
  std::uint8_t group_scales[12];
  std::uint8_t quants[128];
};

// Like Q4_K with a fifth bit: bit g of high_bits[l] for element l of group g.
struct Q5_KBlock {
  std::uint16_t scale;  // F16
  std::uint16_t min;    // F16
  std::uint8_t group_scales[12];
  std::uint8_t high_bits[32];
  std::uint8_t quants[128];
};

// 256 elements in 16 groups of 16: scale * group_scales[group] * (q - 32). Each half of 128 elements has 64
// bytes of low nibbles (byte l: elements l and l + 64) and 32 of high bits (byte l: l, l + 32, l + 64, l + 96).
struct Q6_KBlock {
  std::uint8_t low_bits[128];
  std::uint8_t high_bits[64];
  std::int8_t group_scales[16];
  std::uint16_t scale;  // F16
};

// 32 elements scale * kCodebook[q]; nibbles as in Q4_0.
struct IQ4_NLBlock {
  std::uint16_t scale;  // F16
  std::uint8_t quants[16];
};

// 256 elements in 8 groups of 32, each like an IQ4_NL block of scale * (s - 32). The low four bits of s of group g are
// nibble g of scales_low; its high two are bits 2 g and 2 g + 1 of scales_high.
struct IQ4_XSBlock {
  std::uint16_t scale;  // F16
  std::uint16_t scales_high;
  std::uint8_t scales_low[4];
  std::uint8_t quants[128];
};

// 32 elements mx_scale(exponent) * kMxValues[q]; nibbles as in Q4_0.
struct MXFP4Block {
  std::uint8_t exponent;
  std::uint8_t quants[16];
};

// Block sizes match dtypes.def; integer dtypes have no block struct.
#define SHUNT_BLOCK_SIZE_floating(name, block_bytes) static_assert(sizeof(name##Block) == (block_bytes));
#define SHUNT_BLOCK_SIZE_quantized(name, block_bytes) static_assert(sizeof(name##Block) == (block_bytes));
#define SHUNT_BLOCK_SIZE_integer(name, block_bytes)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_BLOCK_SIZE_##kind(name, block_bytes)
#include "ops/dtypes.def"
#undef SHUNT_BLOCK_SIZE_floating
#undef SHUNT_BLOCK_SIZE_quantized
#undef SHUNT_BLOCK_SIZE_integer

// Converts IEEE 754 binary16, exactly. A signalling NaN becomes quiet, as with the processors' own instructions.
[[nodiscard]] constexpr float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13) | (mantissa == 0 ? 0U : 0x400000U));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// Rounds to nearest, ties to even. Values that are too large become infinite; NaN stays NaN (quiet).
[[nodiscard]] constexpr std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x47800000U) {  // 2^16
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {
    // Below 2^-14 the steps are those of a float just above 0.5, so adding 0.5 does the rounding.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    half = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Converts bfloat16, the upper half of an F32, exactly.
[[nodiscard]] constexpr float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even; NaN stays NaN (quiet).
[[nodiscard]] constexpr std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// The 6-bit scale and minimum of a group of Q4_K and Q5_K.
struct KGroup {
  std::uint8_t scale = 0;
  std::uint8_t min = 0;
};

// Unpacks a group. Groups 0-3 are in the lower 6 bits of bytes 0-3 (scales) and 4-7 (minima). Groups 4-7 have their
// lower 4 bits in bytes 8-11 (scale low, minimum high) and their upper 2 in the upper bits of bytes 0-3 and 4-7.
[[nodiscard]] constexpr KGroup k_group(const std::uint8_t (&group_scales)[12], std::size_t group) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(group_scales[i]); };
  if (group < 4)
    return {static_cast<std::uint8_t>(byte(group) & 63U), static_cast<std::uint8_t>(byte(group + 4) & 63U)};
  return {static_cast<std::uint8_t>((byte(group + 4) & 15U) | ((byte(group - 4) >> 6) << 4)),
          static_cast<std::uint8_t>((byte(group + 4) >> 4) | ((byte(group) >> 6) << 4))};
}

// The 6-bit scale of a group of Q3_K. Its low four bits are a nibble of byte group % 8 (the low one for groups 0-7);
// its high two are a pair of bits of byte 8 + group % 4.
[[nodiscard]] constexpr std::uint8_t q3_group_scale(const std::uint8_t (&group_scales)[12], std::size_t group) {
  const std::uint32_t low = (std::uint32_t{group_scales[group % 8]} >> (group / 8 * 4)) & 15U;
  const std::uint32_t high = (std::uint32_t{group_scales[8 + group % 4]} >> (group / 4 * 2)) & 3U;
  return static_cast<std::uint8_t>(low | high << 4);
}

// The 6-bit scale of a group of IQ4_XS.
[[nodiscard]] constexpr std::uint8_t iq4_group_scale(const IQ4_XSBlock& block, std::size_t group) {
  const std::uint32_t low = (std::uint32_t{block.scales_low[group / 2]} >> (group % 2 * 4)) & 15U;
  const std::uint32_t high = (std::uint32_t{block.scales_high} >> (2 * group)) & 3U;
  return static_cast<std::uint8_t>(low | high << 4);
}

// The levels of IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the values of a 4-bit float: sign, two bits of exponent, one of fraction.
inline constexpr std::int8_t kMxValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of the power of two that the exponent of an MXFP4 block encodes, 2^(exponent - 128). The specification defines
// 255 as NaN; this follows ggml, which reads it as 2^127.
[[nodiscard]] constexpr float mx_scale(std::uint8_t exponent) {
  const std::uint32_t bits = exponent < 2 ? 0x200000U << exponent : (std::uint32_t{exponent} - 1U) << 23;
  return std::bit_cast<float>(bits);
}

// Decodes `elements` consecutive elements exactly. `row` begins at a block.
using RowDecoder = void (*)(const std::byte* row, std::uint64_t elements, float* out);

// Returns null for integer dtypes.
[[nodiscard]] RowDecoder decoder_of(DType dtype);

// REQUIRES: dtype is floating or quantized; elements is a whole number of blocks.
inline void decode_row(DType dtype, const std::byte* row, std::uint64_t elements, float* out) {
  decoder_of(dtype)(row, elements, out);
}

}  // namespace shunt
