// Reads element k of a weight row of any floating or quantized dtype; ops/quantize/blocks.h describes the blocks.
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

SHUNT_FUNCTION float half_at(const std::uint8_t* at) { return widen_f16(*reinterpret_cast<const std::uint16_t*>(at)); }

SHUNT_FUNCTION float q8_0_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 34U;
  return half_at(block) * static_cast<float>(static_cast<std::int8_t>(block[2U + k % 32U]));
}

// Returns the nibble of element k in blocks whose byte j holds elements j and j + 16.
SHUNT_FUNCTION std::uint32_t nibble_at(const std::uint8_t* quants, std::uint32_t k) {
  const std::uint32_t both = quants[k % 16U];
  return k % 32U < 16U ? both & 15U : both >> 4U;
}

SHUNT_FUNCTION float q4_0_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 18U;
  return half_at(block) * (static_cast<float>(nibble_at(block + 2, k)) - 8.0F);
}

SHUNT_FUNCTION float q4_1_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 20U;
  return half_at(block) * static_cast<float>(nibble_at(block + 4, k)) + half_at(block + 2);
}

// The fifth bits precede the nibbles.
SHUNT_FUNCTION float five_bits_at(const std::uint8_t* high_bits, std::uint32_t k) {
  const std::uint32_t high = static_cast<std::uint32_t>(high_bits[k % 32U / 8U]) >> k % 8U & 1U;
  return static_cast<float>(nibble_at(high_bits + 4, k) | high << 4U);
}

SHUNT_FUNCTION float q5_0_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 22U;
  return half_at(block) * (five_bits_at(block + 2, k) - 16.0F);
}

SHUNT_FUNCTION float q5_1_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 24U;
  return half_at(block) * five_bits_at(block + 4, k) + half_at(block + 2);
}

// Returns the low two bits of element i in a block of Q2_K or Q3_K.
SHUNT_FUNCTION std::uint32_t two_bits_at(const std::uint8_t* quants, std::uint32_t i) {
  return static_cast<std::uint32_t>(quants[i / 128U * 32U + i % 32U]) >> i % 128U / 32U * 2U & 3U;
}

SHUNT_FUNCTION float q2_k_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 256U} * 84U;
  const std::uint32_t i = k % 256U;
  const std::uint32_t both = block[i / 16U];
  return half_at(block + 80) * static_cast<float>(both & 15U) * static_cast<float>(two_bits_at(block + 16, i)) -
         half_at(block + 82) * static_cast<float>(both >> 4U);
}

SHUNT_FUNCTION float q3_k_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 256U} * 110U;
  const std::uint32_t i = k % 256U;
  const std::uint32_t g = i / 16U;
  const std::uint32_t scale = (static_cast<std::uint32_t>(block[96U + g % 8U]) >> g / 8U * 4U & 15U) |
                              (static_cast<std::uint32_t>(block[104U + g % 4U]) >> g / 4U * 2U & 3U) << 4U;
  const std::uint32_t high = static_cast<std::uint32_t>(block[i % 32U]) >> i / 32U & 1U;
  const std::uint32_t quant = two_bits_at(block + 32, i) | high << 2U;
  return half_at(block + 108) * (static_cast<float>(scale) - 32.0F) * (static_cast<float>(quant) - 4.0F);
}

// Dequantizes `quant` of group `g`, in blocks that begin with two halves and the 6-bit scales and minima of eight
// groups.
SHUNT_FUNCTION float k_element(const std::uint8_t* block, std::uint32_t g, std::uint32_t quant) {
  const std::uint8_t* scales = block + 4;
  std::uint32_t scale = scales[g & 3U];
  std::uint32_t min = scales[(g & 3U) + 4U];
  if (g < 4U) {
    scale &= 63U;
    min &= 63U;
  } else {
    scale = (scales[g + 4U] & 15U) | (scale >> 6U) << 4U;
    min = static_cast<std::uint32_t>(scales[g + 4U] >> 4U) | (min >> 6U) << 4U;
  }
  return half_at(block) * static_cast<float>(scale) * static_cast<float>(quant) -
         half_at(block + 2) * static_cast<float>(min);
}

SHUNT_FUNCTION std::uint32_t k_nibble(const std::uint8_t* quants, std::uint32_t g, std::uint32_t l) {
  const std::uint32_t both = quants[g / 2U * 32U + l];
  return g % 2U == 0U ? both & 15U : both >> 4U;
}

SHUNT_FUNCTION float q4_k_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 256U} * 144U;
  const std::uint32_t g = k % 256U / 32U;
  return k_element(block, g, k_nibble(block + 16, g, k % 32U));
}

SHUNT_FUNCTION float q5_k_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 256U} * 176U;
  const std::uint32_t g = k % 256U / 32U;
  const std::uint32_t high = static_cast<std::uint32_t>(block[16U + k % 32U]) >> g & 1U;
  return k_element(block, g, k_nibble(block + 48, g, k % 32U) | high << 4U);
}

SHUNT_FUNCTION float q6_k_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 256U} * 210U;
  const std::uint32_t i = k % 256U;
  const std::uint32_t half = i / 128U;
  const std::uint32_t l = i % 128U;
  const std::uint32_t low = static_cast<std::uint32_t>(block[half * 64U + l % 64U]) >> l / 64U * 4U & 15U;
  const std::uint32_t high = static_cast<std::uint32_t>(block[128U + half * 32U + l % 32U]) >> l / 32U * 2U & 3U;
  const auto scale = static_cast<std::int8_t>(block[192U + i / 16U]);
  return half_at(block + 208) * static_cast<float>(scale) * (static_cast<float>(low | high << 4U) - 32.0F);
}

// kCodebook of blocks.h, four levels to a word, so that no device memory is needed for them.
SHUNT_FUNCTION float codebook_level(std::uint32_t quant) {
  const std::uint32_t words[4] = {0xBFAD9881U, 0xF6EADDCFU, 0x26190D01U, 0x71594535U};
  return static_cast<float>(static_cast<std::int8_t>(words[quant / 4U] >> quant % 4U * 8U & 255U));
}

SHUNT_FUNCTION float iq4_nl_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 18U;
  return half_at(block) * codebook_level(nibble_at(block + 2, k));
}

SHUNT_FUNCTION float iq4_xs_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 256U} * 136U;
  const std::uint32_t g = k % 256U / 32U;
  const std::uint32_t high = block[2] | static_cast<std::uint32_t>(block[3]) << 8U;
  const std::uint32_t scale =
      (static_cast<std::uint32_t>(block[4U + g / 2U]) >> g % 2U * 4U & 15U) | (high >> 2U * g & 3U) << 4U;
  const std::uint8_t* quants = block + 8U + std::uint64_t{g} * 16U;
  return half_at(block) * (static_cast<float>(scale) - 32.0F) * codebook_level(nibble_at(quants, k));
}

// Returns twice a 4-bit float: kMxValues of blocks.h.
SHUNT_FUNCTION float mx_value(std::uint32_t quant) {
  const std::uint32_t size = quant & 7U;
  const float twice = static_cast<float>(size < 4U ? size : (2U | (size & 1U)) << (size / 2U - 1U));
  return (quant & 8U) != 0U ? -twice : twice;
}

// Twice a 4-bit float times half of the block's power of two, mx_scale of blocks.h.
SHUNT_FUNCTION float mxfp4_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 17U;
  const std::uint32_t exponent = block[0];
  const float scale = kernel_math::float_of(exponent < 2U ? 0x200000U << exponent : (exponent - 1U) << 23U);
  return mx_value(nibble_at(block + 1, k)) * scale;
}

SHUNT_FUNCTION float weight_at(std::uint32_t of, const std::uint8_t* row, std::uint32_t k) {
  switch (of) {
    case dtype::Q8_0:
      return q8_0_at(row, k);
    case dtype::Q4_0:
      return q4_0_at(row, k);
    case dtype::Q4_1:
      return q4_1_at(row, k);
    case dtype::Q5_0:
      return q5_0_at(row, k);
    case dtype::Q5_1:
      return q5_1_at(row, k);
    case dtype::Q2_K:
      return q2_k_at(row, k);
    case dtype::Q3_K:
      return q3_k_at(row, k);
    case dtype::Q4_K:
      return q4_k_at(row, k);
    case dtype::Q5_K:
      return q5_k_at(row, k);
    case dtype::Q6_K:
      return q6_k_at(row, k);
    case dtype::IQ4_NL:
      return iq4_nl_at(row, k);
    case dtype::IQ4_XS:
      return iq4_xs_at(row, k);
    case dtype::MXFP4:
      return mxfp4_at(row, k);
    default:
      return load(of, row, k);
  }
}

}  // namespace shunt
