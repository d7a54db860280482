// Reads elements of a weight matrix of any dtype that has rows or strips.
#pragma once

#include "ops/strip.cuh"
#include "ops/weight.cuh"

namespace shunt {

// A matrix with rows of `row_bytes` from each to the next, or in strips of as many bytes.
template <bool in_strips>
struct Matrix {
  const std::uint8_t* bytes;
  std::uint32_t dtype;
  std::uint32_t columns;
  std::uint64_t row_bytes;

  SHUNT_FUNCTION float at(std::uint64_t row, std::uint32_t column) const {
    if constexpr (in_strips) return strip_element(dtype, bytes, columns, row, column);
    return weight_at(dtype, bytes + row * row_bytes, column);
  }
};

}  // namespace shunt
