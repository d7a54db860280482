// How a kernel's arguments describe a tensor of any strides. Plain data of 32-bit fields, shared by C++, CUDA and
// (field by field) the shaders' uniform blocks.
//
// Axes are aligned to the right: [tokens, columns] is {1, 1, tokens, columns}, so a "row" is one run over the
// innermost axis and rows are numbered in the order of a contiguous tensor. Axis 0 may be a bucket of which
// only some entries are valid; as it is the outermost one, the valid rows are the first ones.
#pragma once

#include <cstdint>

#include "ops/parameters.h"

namespace shunt {

struct StridedTensor {
  std::uint32_t extents[4] = {1, 1, 1, 1};
  std::uint32_t strides[4] = {0, 0, 0, 0};  // elements; 0 on missing axes
  std::uint32_t dtype = 0;                  // the number of a DType
  std::uint32_t extent = 0;                 // the number of an Extent: what counts the valid entries
  std::uint32_t entries = 1;                // extent of axis 0
  std::uint32_t first_axis = 4;             // where axis 0 stands; 4 for a scalar
};
static_assert(sizeof(StridedTensor) == 48);

constexpr std::uint64_t row_count(const StridedTensor& x) {
  return std::uint64_t{x.extents[0]} * x.extents[1] * x.extents[2];
}

// The first so many rows are valid.
constexpr std::uint64_t valid_row_count(const StridedTensor& x, const Parameters& parameters) {
  if (x.entries == 0) return 0;
  return row_count(x) / x.entries * valid_rows(x.entries, static_cast<Extent>(x.extent), parameters);
}

// Elements from the start of a tensor with these strides to a row of `x`.
constexpr std::uint64_t row_offset(const StridedTensor& x, const std::uint32_t (&strides)[4], std::uint64_t row) {
  const std::uint64_t third = row % x.extents[2];
  const std::uint64_t outer = row / x.extents[2];
  return third * strides[2] + (outer % x.extents[1]) * strides[1] + (outer / x.extents[1]) * strides[0];
}
constexpr std::uint64_t row_offset(const StridedTensor& x, std::uint64_t row) { return row_offset(x, x.strides, row); }

}  // namespace shunt
