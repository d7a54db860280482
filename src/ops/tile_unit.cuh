// 32 neighbouring elements of a weight row of any dtype, read at once and decoded later, for products of tiles.
#pragma once

#include "ops/weight_unit.cuh"

namespace shunt {

template <std::uint32_t of>
struct TileUnit {
  using Unit = WeightUnit<of>;
  Unit unit;

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) {
    constexpr std::uint32_t kUnits = Unit::kBlockElements / kUnitElements;
    unit.read(row + std::uint64_t{number / kUnits} * Unit::kBlockBytes, number % kUnits);
  }
  SHUNT_FUNCTION FourFloats four(std::uint32_t i) const {
    const std::uint32_t which = Unit::kHasHalves ? i / 4U : 0;
    FourFloats values = numbers_of<Unit::kBias>(unit.four(i));
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) {
      values.values[e] *= unit.scale[which];
      if constexpr (Unit::kHasOffset) values.values[e] += unit.offset[which];
    }
    return values;
  }
};

template <std::uint32_t of, std::uint32_t bytes>
struct FloatUnit {
  static constexpr std::uint32_t kEach = 16 / bytes;  // elements of a load
  FourWords loaded[kUnitElements / kEach];

  SHUNT_FUNCTION void read(const std::uint8_t* row, std::uint32_t number) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kUnitElements / kEach; ++i)
      loaded[i] = load_once_at_even(row + std::uint64_t{number} * kUnitElements * bytes + std::uint64_t{i} * 16U);
  }
  SHUNT_FUNCTION FourFloats four(std::uint32_t i) const {
    FourFloats values;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e)
      values.values[e] = float_element<of>(loaded[i * 4U / kEach], (i * 4U + e) % kEach);
    return values;
  }
};
template <>
struct TileUnit<dtype::F32> : FloatUnit<dtype::F32, 4> {};
template <>
struct TileUnit<dtype::F16> : FloatUnit<dtype::F16, 2> {};
template <>
struct TileUnit<dtype::BF16> : FloatUnit<dtype::BF16, 2> {};

}  // namespace shunt
