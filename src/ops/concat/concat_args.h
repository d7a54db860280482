// Arguments of concat: the contiguous result holds a and, after it along one axis, b.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ConcatArgs) {
  StridedTensor a;
  StridedTensor b;
  SHUNT_U32(axis);  // index into the four extents
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(ConcatArgs, 112)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns the element of the result at which row `row` of a, or of b, begins.
constexpr std::uint64_t concat_target(const ConcatArgs& args, bool of_b, std::uint64_t row) {
  const StridedTensor& from = of_b ? args.b : args.a;
  const std::uint64_t index[4] = {row / from.extents[2] / from.extents[1], row / from.extents[2] % from.extents[1],
                                  row % from.extents[2], 0};
  std::uint64_t element = 0;
  for (std::uint32_t axis = 0; axis < 4; ++axis) {
    const bool is_axis = axis == args.axis;
    const std::uint64_t extent = args.a.extents[axis] + (is_axis ? std::uint64_t{args.b.extents[axis]} : 0);
    element = element * extent + index[axis] + (of_b && is_axis ? args.a.extents[axis] : 0);
  }
  return element;
}

}  // namespace shunt
#endif
