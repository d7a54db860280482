// Scales and quants of blocks on a GPU, as encode_search.h has them. No product here precedes a sum, so that compilers
// have nothing to fuse.
#pragma once

#include "ops/kernel.cuh"

namespace shunt::encoding {

SHUNT_FUNCTION float inverse(float value) { return value == 0.0F ? 0.0F : 1.0F / value; }

// Converts a scale to F16, away from zero where the steps between small numbers are coarse.
SHUNT_FUNCTION std::uint32_t f16_scale(float value) {
  const std::uint32_t bits = narrow_f16(value);
  const bool too_small = kernel_math::abs(widen_f16(bits)) < kernel_math::abs(value) * (1.0F - 0x1p-9F);
  return bits + (too_small ? 1U : 0U);
}

// Adding and subtracting 1.5 * 2^23 rounds to the nearest whole number.
SHUNT_FUNCTION float nearest(float value, float low, float high) {
  const float raised = value > low ? value : low;
  const float clamped = raised < high ? raised : high;
  return (clamped + 12582912.0F) - 12582912.0F;
}

}  // namespace shunt::encoding
