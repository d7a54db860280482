// Writes state in blocks of Q8_0: the threads that have the elements of a block find its scale together.
#pragma once

#include "ops/quantize/scales.cuh"

namespace shunt {

// Returns the largest of 2^steps neighbouring threads' numbers to each of them; NaN if there is one. REQUIRES: they all
// call it.
SHUNT_FUNCTION float largest_of_neighbours(float value, std::uint32_t steps) {
  for (std::uint32_t step = 0; step < steps; ++step) value = kernel_math::max(value, from_lane(value, 1U << step));
  return value;
}

// Stores element `index` of the state, whose block has elements of up to this magnitude.
SHUNT_FUNCTION void store_in_block(void* state, std::uint64_t index, float value, float largest) {
  std::uint8_t* const block = static_cast<std::uint8_t*>(state) + row_bytes(dtype::Q8_0, index / 32U * 32U);
  // A scale of NaN shows that an element is infinite.
  const float not_finite = largest - largest;  // NOLINT(misc-redundant-expression): NaN of an infinity
  const std::uint32_t scale = encoding::f16_scale(largest / 127.0F + not_finite);
  const auto at = static_cast<std::uint32_t>(index % 32U);
  if (at == 0) *reinterpret_cast<std::uint16_t*>(block) = static_cast<std::uint16_t>(scale);
  const float quant = encoding::nearest(value * encoding::inverse(widen_f16(scale)), -127.0F, 127.0F);
  block[2U + at] = static_cast<std::uint8_t>(static_cast<std::int32_t>(quant));
}

}  // namespace shunt
