// Reads cached keys and values, for the kernels that take any dtype that a cache may have.
#pragma once

#include "ops/weight.cuh"

namespace shunt {

// Returns element i of the head that begins at element `begin`.
SHUNT_FUNCTION float cached(std::uint32_t of, const void* state, std::uint64_t begin, std::uint32_t i) {
  if (of != dtype::Q8_0) return load(of, state, begin + i);
  return q8_0_at(static_cast<const std::uint8_t*>(state) + row_bytes(of, begin), i);
}

// Eight elements of a head as they are stored.
template <std::uint32_t of>
struct Eight {
  FourWords four{};

  // Reads those from element `begin` of the state on.
  SHUNT_FUNCTION void read(const void* state, std::uint64_t begin) {
    four = load_four(static_cast<const std::uint16_t*>(state) + begin);
  }
  SHUNT_FUNCTION float operator[](std::uint32_t i) const {
    const std::uint32_t sixteen = four.words[i / 2U] >> i % 2U * 16U & 0xFFFFU;
    return of == dtype::F16 ? widen_f16(sixteen) : widen_bf16(sixteen);
  }
};

// Blocks begin at even addresses.
template <>
struct Eight<dtype::Q8_0> {
  float scale = 0.0F;
  std::uint32_t pairs[4]{};

  SHUNT_FUNCTION void read(const void* state, std::uint64_t begin) {
    const std::uint8_t* const block =
        static_cast<const std::uint8_t*>(state) + row_bytes(dtype::Q8_0, begin / 32U * 32U);
    const auto* const quants = reinterpret_cast<const std::uint16_t*>(block + 2U + begin % 32U);
    scale = half_at(block);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) pairs[i] = quants[i];
  }
  SHUNT_FUNCTION float operator[](std::uint32_t i) const {
    return scale * static_cast<float>(static_cast<std::int8_t>(pairs[i / 2U] >> i % 2U * 8U & 255U));
  }
};

}  // namespace shunt
