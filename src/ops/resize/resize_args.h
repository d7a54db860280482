// Arguments of resize_nearest and resize_bilinear. Along an axis, pixel i of n of the result is at position
// (i + 1/2) * m / n - 1/2 among the m pixels of x.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ResizeArgs) {
  StridedTensor x;      // [images, channels, height, width]; the contiguous result has its dtype
  SHUNT_U32S(2, size);  // height and width
  SHUNT_U32(is_linear);
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(ResizeArgs, 64)

#ifndef SHUNT_GLSL
namespace shunt {

// Two neighbouring rows or columns of x, and the weight of the second.
struct Between {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  double share = 0;
};
// Maps a row (axis 0) or column (axis 1) of the result to x.
constexpr Between resize_place(const ResizeArgs& args, std::uint32_t axis, std::uint64_t place) {
  const std::int64_t in = args.x.extents[2 + axis];
  const std::int64_t out = args.size[axis];
  // The position in x is numerator / (2 out).
  const std::int64_t numerator = (2 * static_cast<std::int64_t>(place) + 1) * in - out;
  const auto inside = [in](std::int64_t pixel) { return static_cast<std::uint64_t>(pixel < in ? pixel : in - 1); };
  if (args.is_linear == 0) {
    // Rounds halves down: the ceiling of the position minus a half, or pixel 0 before that.
    const std::int64_t above = numerator > out ? numerator - out : 0;
    const std::uint64_t nearest = inside((above + 2 * out - 1) / (2 * out));
    return {nearest, nearest, 0};
  }
  if (numerator <= 0) return {0, 0, 0};
  const std::int64_t first = numerator / (2 * out);
  return {inside(first), inside(first + 1), static_cast<double>(numerator % (2 * out)) / static_cast<double>(2 * out)};
}

}  // namespace shunt
#endif
