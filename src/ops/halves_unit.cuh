// 32 neighbouring elements of a weight row of any dtype as halves.
//
// So that these neither overflow nor become too small, a caller multiplies them by a power of two, 2^u, which it
// chooses by size(). HalvesUnit<dtype> has:
//   kIsFixed            values are halves already, and there are no size() and use()
//   read(row, number)   reads unit `number` of a row in shared memory
//   size()              an e with |value| < 2^e for all values, though it may be some bits larger than that takes
//   use(unit)           sets 2^u
//   four(i)             elements 4 i to 4 i + 3, times 2^u
#pragma once

#include "ops/halves.cuh"
#include "ops/shared_memory.cuh"
#include "ops/tile_unit.cuh"

namespace shunt {

// Four halves: the first and the last two.
struct TwoPairs {
  std::uint32_t low;
  std::uint32_t high;
};

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
    return size_of(largest);
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

// Reads a unit of a row of floats. They are 16 bytes at a time wherever the row begins at a multiple of that.
template <std::uint32_t of, std::uint32_t bytes>
SHUNT_FUNCTION void read_floats(TileUnit<of>& tile, const std::uint8_t* row, std::uint32_t number) {
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kUnitElements * bytes / 16U; ++i) {
    const std::uint8_t* const at = row + std::uint64_t{number} * kUnitElements * bytes + std::uint64_t{i} * 16U;
    tile.loaded[i] = is_in_sixteens(at) ? load_shared(shared_address(at)) : load_once_at_even(at);
  }
}

template <std::uint32_t of, std::uint32_t bytes>
struct FloatHalvesUnit {
  static constexpr bool kIsFixed = false;
  static constexpr std::uint32_t kBlockElements = 1;
  static constexpr std::uint32_t kBlockBytes = bytes;
  TileUnit<of> tile;
  float factor;

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) { read_floats<of, bytes>(tile, row, number); }
  // Compares bits: floats that have been widened for this would take registers until they are rounded.
  SHUNT_FUNCTION std::int32_t size() const {
    std::uint32_t largest = 0;
    const auto take = [&](std::uint32_t bits) {
      const std::uint32_t size = bits & 0x7FFFFFFFU;
      largest = size > largest ? size : largest;
    };
    SHUNT_UNROLL
    for (const FourWords& four : tile.loaded) {
      SHUNT_UNROLL
      for (const std::uint32_t word : four.words) {
        take(word);
        if constexpr (bytes == 2) take(word << 16U);
      }
    }
    return size_of(kernel_math::float_of(largest));
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

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) {
    read_floats<dtype::F16, 2>(tile, row, number);
  }
  SHUNT_FUNCTION TwoPairs four(std::uint32_t i) const {
    const FourWords& eight = tile.loaded[i / 2U];
    return i % 2U == 0 ? TwoPairs{eight.words[0], eight.words[1]} : TwoPairs{eight.words[2], eight.words[3]};
  }
};

}  // namespace shunt
