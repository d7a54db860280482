// The description of a tensor with any strides in a kernel's arguments.
//
// Axes are aligned to the right: [tokens, columns] is {1, 1, tokens, columns}. A row is one run over the innermost
// axis; rows are numbered in the order of a contiguous tensor. Axis 0 may be a bucket in which only some entries are
// valid; because it is outermost, the valid rows come first.
#pragma once

#include "ops/parameters.h"

SHUNT_ARGS(StridedTensor) {
  SHUNT_U32S(4, extents);  // 1 on missing axes
  SHUNT_U32S(4, strides);  // elements; 0 on missing axes
  SHUNT_U32(dtype);        // the number of a DType
  SHUNT_U32(extent);       // the number of an Extent, which counts the valid entries
  SHUNT_U32(entries);      // extent of axis 0
  SHUNT_U32(first_axis);   // index of axis 0; 4 for a scalar
};
SHUNT_ARGS_BYTES(StridedTensor, 48)

#ifndef SHUNT_GLSL
namespace shunt {

constexpr std::uint64_t row_count(const StridedTensor& x) {
  return std::uint64_t{x.extents[0]} * x.extents[1] * x.extents[2];
}

// Returns the number of valid rows, which come first.
constexpr std::uint64_t valid_row_count(const StridedTensor& x, const Parameters& parameters) {
  if (x.entries == 0) return 0;
  return row_count(x) / x.entries * valid_rows(x.entries, static_cast<Extent>(x.extent), parameters);
}

// Returns the offset of a row, in elements, in a tensor with these extents and strides.
constexpr std::uint64_t row_offset(const std::uint32_t (&extents)[4], const std::uint32_t (&strides)[4],
                                   std::uint64_t row) {
  const std::uint64_t third = row % extents[2];
  const std::uint64_t outer = row / extents[2];
  return third * strides[2] + (outer % extents[1]) * strides[1] + (outer / extents[1]) * strides[0];
}
constexpr std::uint64_t row_offset(const StridedTensor& x, std::uint64_t row) {
  return row_offset(x.extents, x.strides, row);
}

}  // namespace shunt
#endif
