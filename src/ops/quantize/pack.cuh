// The bytes of blocks (blocks.h) from the scales, minima and codes that encode.cuh finds.
#pragma once

#include "ops/quantize/encode.cuh"

namespace shunt::encoding {

SHUNT_FUNCTION std::uint32_t byte_at(std::uint32_t number, std::uint32_t byte) { return number >> byte * 8U & 255U; }

// Returns byte j of nibbles whose byte j holds codes j and j + 16.
SHUNT_FUNCTION std::uint32_t nibbles(const std::uint8_t* codes, std::uint32_t j) {
  return (codes[j] & 15U) | (codes[j + 16U] & 15U) << 4U;
}
// Returns byte j of codes 64 p + l (low nibble) and 64 p + 32 + l, where p is j / 32 and l is j % 32.
SHUNT_FUNCTION std::uint32_t wide_nibbles(const std::uint8_t* codes, std::uint32_t j) {
  const std::uint8_t* const first = codes + std::uint64_t{64} * (j / 32U) + j % 32U;
  return (first[0] & 15U) | (first[32] & 15U) << 4U;
}
// Returns byte j of two bits of each code, from bit `from` on: codes l, l + 32, l + 64 and l + 96 of a half.
SHUNT_FUNCTION std::uint32_t pairs(const std::uint8_t* codes, std::uint32_t j, std::uint32_t from) {
  std::uint32_t bits = 0;
  for (std::uint32_t part = 0; part < 4; ++part)
    bits |= (static_cast<std::uint32_t>(codes[128U * (j / 32U) + j % 32U + 32U * part]) >> from & 3U) << 2U * part;
  return bits;
}
// Returns byte j of one bit of eight codes, which are `step` apart.
SHUNT_FUNCTION std::uint32_t bits_of_eight(const std::uint8_t* codes, std::uint32_t bit, std::uint32_t step) {
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < 8; ++i)
    bits |= (static_cast<std::uint32_t>(codes[std::uint64_t{i} * step]) >> bit & 1U) << i;
  return bits;
}

// Returns byte i of block b of a tile with blocks of 32 elements.
SHUNT_FUNCTION std::uint32_t byte_of_small(const Tile& tile, std::uint32_t to, std::uint32_t b, std::uint32_t i) {
  const std::uint8_t* const codes = tile.codes + std::uint64_t{b} * 32;
  if (to == dtype::MXFP4) return i == 0 ? tile.scales[b] : nibbles(codes, i - 1U);
  if (i < 2) return byte_at(tile.scales[b], i);
  if (to == dtype::Q8_0) return codes[i - 2U] - 127U;
  std::uint32_t at = i - 2U;
  if (to == dtype::Q4_1 || to == dtype::Q5_1) {
    if (at < 2) return byte_at(tile.mins[b], at);
    at -= 2U;
  }
  if (to == dtype::Q5_0 || to == dtype::Q5_1) {
    if (at < 4) return bits_of_eight(codes + std::uint64_t{at} * 8, 4, 1);
    at -= 4U;
  }
  return nibbles(codes, at);
}

SHUNT_FUNCTION std::uint32_t scale_of(const Super& block, std::uint32_t g, float offset) {
  return static_cast<std::uint32_t>(block.scales[g] + offset);
}

// Returns byte i of the scales and minima of the groups of Q4_K and Q5_K.
SHUNT_FUNCTION std::uint32_t k_group_byte(const Super& block, std::uint32_t i) {
  const bool is_min = i / 4U % 2U == 1U;
  const auto number = [&](std::uint32_t g, bool of_min) {
    return static_cast<std::uint32_t>(of_min ? block.mins[g] : block.scales[g]);
  };
  if (i < 8) return number(i % 4U, is_min) | number(i % 4U + 4U, is_min) >> 4U << 6U;
  return (number(i - 4U, false) & 15U) | (number(i - 4U, true) & 15U) << 4U;
}
// Returns byte i of the scales of the groups of Q3_K.
SHUNT_FUNCTION std::uint32_t q3_group_byte(const Super& block, std::uint32_t i) {
  if (i < 8) return (scale_of(block, i, 32.0F) & 15U) | (scale_of(block, i + 8U, 32.0F) & 15U) << 4U;
  std::uint32_t bits = 0;
  for (std::uint32_t part = 0; part < 4; ++part) bits |= scale_of(block, i - 8U + 4U * part, 32.0F) >> 4U << 2U * part;
  return bits;
}
// Returns the high two bits of the scales of all groups of IQ4_XS.
SHUNT_FUNCTION std::uint32_t iq4_high_bits(const Super& block) {
  std::uint32_t bits = 0;
  for (std::uint32_t g = 0; g < 8; ++g) bits |= scale_of(block, g, 32.0F) >> 4U << 2U * g;
  return bits;
}

SHUNT_FUNCTION std::uint32_t q2_k_byte(const Tile& tile, const Super& block, std::uint32_t i) {
  if (i < 16) return scale_of(block, i, 0.0F) | static_cast<std::uint32_t>(block.mins[i]) << 4U;
  if (i < 80) return pairs(tile.codes, i - 16U, 0);
  return i < 82 ? byte_at(block.scale, i - 80U) : byte_at(block.min, i - 82U);
}
SHUNT_FUNCTION std::uint32_t q3_k_byte(const Tile& tile, const Super& block, std::uint32_t i) {
  if (i < 32) return bits_of_eight(tile.codes + i, 2, 32);
  if (i < 96) return pairs(tile.codes, i - 32U, 0);
  return i < 108 ? q3_group_byte(block, i - 96U) : byte_at(block.scale, i - 108U);
}
SHUNT_FUNCTION std::uint32_t q4_or_5_k_byte(const Tile& tile, const Super& block, bool is_5, std::uint32_t i) {
  if (i < 4) return i < 2 ? byte_at(block.scale, i) : byte_at(block.min, i - 2U);
  if (i < 16) return k_group_byte(block, i - 4U);
  if (!is_5) return wide_nibbles(tile.codes, i - 16U);
  return i < 48 ? bits_of_eight(tile.codes + i - 16, 4, 32) : wide_nibbles(tile.codes, i - 48U);
}
SHUNT_FUNCTION std::uint32_t q6_k_byte(const Tile& tile, const Super& block, std::uint32_t i) {
  if (i < 128) {
    const std::uint8_t* const first = tile.codes + std::uint64_t{128} * (i / 64U) + i % 64U;
    return (first[0] & 15U) | (first[64] & 15U) << 4U;
  }
  if (i < 192) return pairs(tile.codes, i - 128U, 4);
  return i < 208 ? scale_of(block, i - 192U, 128.0F) - 128U : byte_at(block.scale, i - 208U);
}
SHUNT_FUNCTION std::uint32_t iq4_xs_byte(const Tile& tile, const Super& block, std::uint32_t i) {
  if (i < 4) return i < 2 ? byte_at(block.scale, i) : byte_at(iq4_high_bits(block), i - 2U);
  if (i < 8) {
    const std::uint32_t g = 2U * (i - 4U);
    return (scale_of(block, g, 32.0F) & 15U) | (scale_of(block, g + 1U, 32.0F) & 15U) << 4U;
  }
  return nibbles(tile.codes + std::uint64_t{32} * ((i - 8U) / 16U), (i - 8U) % 16U);
}

// Returns byte i of block b of a tile.
SHUNT_FUNCTION std::uint8_t byte_of(const Tile& tile, std::uint32_t to, std::uint32_t b, std::uint32_t i) {
  const Super& block = tile.supers[0];
  switch (to) {
    case dtype::Q2_K:
      return static_cast<std::uint8_t>(q2_k_byte(tile, block, i));
    case dtype::Q3_K:
      return static_cast<std::uint8_t>(q3_k_byte(tile, block, i));
    case dtype::Q4_K:
    case dtype::Q5_K:
      return static_cast<std::uint8_t>(q4_or_5_k_byte(tile, block, to == dtype::Q5_K, i));
    case dtype::Q6_K:
      return static_cast<std::uint8_t>(q6_k_byte(tile, block, i));
    case dtype::IQ4_XS:
      return static_cast<std::uint8_t>(iq4_xs_byte(tile, block, i));
    default:
      return static_cast<std::uint8_t>(byte_of_small(tile, to, b, i));
  }
}

}  // namespace shunt::encoding
