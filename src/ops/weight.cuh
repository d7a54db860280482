// Element k of a weight row of any floating or quantized dtype; the blocks are those of ops/quantize/blocks.h.
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

SHUNT_FUNCTION float half_at(const std::uint8_t* at) { return widen_f16(*reinterpret_cast<const std::uint16_t*>(at)); }

SHUNT_FUNCTION float q8_0_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 34U;
  return half_at(block) * static_cast<float>(static_cast<std::int8_t>(block[2U + k % 32U]));
}

SHUNT_FUNCTION float q4_0_at(const std::uint8_t* row, std::uint32_t k) {
  const std::uint8_t* block = row + std::uint64_t{k / 32U} * 18U;
  const std::uint32_t both = block[2U + k % 16U];
  const std::uint32_t quant = k % 32U < 16U ? both & 15U : both >> 4U;
  return half_at(block) * (static_cast<float>(quant) - 8.0F);
}

// Of blocks that begin with two halves and the 6-bit scales and minima of eight groups; `quant` of group `g`.
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

SHUNT_FUNCTION float weight_at(std::uint32_t of, const std::uint8_t* row, std::uint32_t k) {
  switch (of) {
    case dtype::Q8_0:
      return q8_0_at(row, k);
    case dtype::Q4_0:
      return q4_0_at(row, k);
    case dtype::Q4_K:
      return q4_k_at(row, k);
    case dtype::Q5_K:
      return q5_k_at(row, k);
    case dtype::Q6_K:
      return q6_k_at(row, k);
    default:
      return load(of, row, k);
  }
}

}  // namespace shunt
