// 32 neighbouring elements of a weight row of any dtype as halves.
//
// So that these neither overflow nor become too small, a caller multiplies them by a power of two, 2^u, which it
// chooses by size(). HalvesUnit<dtype> has:
//   kIsFixed            values are halves already, and there are no size() and use()
//   read(row, number)   reads unit `number` of the row
//   size()              an e with |value| < 2^e for all values, though it may be some bits larger than that takes
//   use(unit)           sets 2^u
//   four(i)             elements 4 i to 4 i + 3, times 2^u
#pragma once

#include "ops/halves.cuh"
#include "ops/tile_unit.cuh"

namespace shunt {

// Four halves: the first and the last two.
struct TwoPairs {
  std::uint32_t low;
  std::uint32_t high;
};

// Returns an e with |value| < 2^e.
SHUNT_FUNCTION std::int32_t exponent_above(float value) {
  return static_cast<std::int32_t>(kernel_math::bits_of(value) >> 23U & 255U) - 126;
}

template <std::uint32_t of>
struct HalvesUnit {
  static constexpr bool kIsFixed = false;
  static constexpr std::uint32_t kBlockElements = WeightUnit<of>::kBlockElements;
  static constexpr std::uint32_t kBlockBytes = WeightUnit<of>::kBlockBytes;
  TileUnit<of> tile;

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) { tile.read(row, number); }
  SHUNT_FUNCTION std::int32_t size() const {
    constexpr float kLargestNumber = 128.0F;
    float largest = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < (WeightUnit<of>::kHasHalves ? 2 : 1); ++i) {
      float value = kernel_math::abs(tile.unit.scale[i]) * kLargestNumber;
      if constexpr (WeightUnit<of>::kHasOffset) value += kernel_math::abs(tile.unit.offset[i]);
      largest = kernel_math::larger(largest, value);
    }
    return exponent_above(largest);
  }
  SHUNT_FUNCTION void use(float unit) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < (WeightUnit<of>::kHasHalves ? 2 : 1); ++i) {
      tile.unit.scale[i] *= unit;
      if constexpr (WeightUnit<of>::kHasOffset) tile.unit.offset[i] *= unit;
    }
  }
  SHUNT_FUNCTION TwoPairs four(std::uint32_t i) const {
    const FourFloats values = tile.four(i);
    return {narrow_pair(values.values[0], values.values[1]), narrow_pair(values.values[2], values.values[3])};
  }
};

template <std::uint32_t of, std::uint32_t bytes>
struct FloatHalvesUnit {
  static constexpr bool kIsFixed = false;
  static constexpr std::uint32_t kBlockElements = 1;
  static constexpr std::uint32_t kBlockBytes = bytes;
  TileUnit<of> tile;
  float factor;

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) { tile.read(row, number); }
  SHUNT_FUNCTION std::int32_t size() const {
    float largest = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kUnitElements / 4; ++i) {
      const FourFloats values = tile.four(i);
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) largest = kernel_math::larger(largest, kernel_math::abs(values.values[e]));
    }
    return exponent_above(largest);
  }
  SHUNT_FUNCTION void use(float unit) { factor = unit; }
  SHUNT_FUNCTION TwoPairs four(std::uint32_t i) const {
    const FourFloats values = tile.four(i);
    return {narrow_pair(values.values[0] * factor, values.values[1] * factor),
            narrow_pair(values.values[2] * factor, values.values[3] * factor)};
  }
};
template <>
struct HalvesUnit<dtype::F32> : FloatHalvesUnit<dtype::F32, 4> {};
template <>
struct HalvesUnit<dtype::BF16> : FloatHalvesUnit<dtype::BF16, 2> {};

template <>
struct HalvesUnit<dtype::F16> {
  static constexpr bool kIsFixed = true;
  static constexpr std::uint32_t kBlockElements = 1;
  static constexpr std::uint32_t kBlockBytes = 2;
  TileUnit<dtype::F16> tile;

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) { tile.read(row, number); }
  SHUNT_FUNCTION TwoPairs four(std::uint32_t i) const {
    const FourWords& eight = tile.loaded[i / 2U];
    return {eight.words[i % 2U * 2U], eight.words[i % 2U * 2U + 1U]};
  }
};

}  // namespace shunt
