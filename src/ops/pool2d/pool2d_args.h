// Arguments of max_pool2d and avg_pool2d: the maximum or mean of the elements of x under each position of the kernel.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(Pool2dArgs) {
  StridedTensor x;        // [images, channels, height, width]; the contiguous result has its dtype
  SHUNT_U32S(2, places);  // positions of the kernel: height and width of the result; all pairs are in this order
  SHUNT_U32S(2, kernel);
  SHUNT_U32S(2, stride);
  SHUNT_U32S(2, padding);  // above and left
  SHUNT_U32(is_max);
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(Pool2dArgs, 96)

#ifndef SHUNT_GLSL
namespace shunt {

// A half-open range of rows or columns of x.
struct PoolRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
// Returns the rows (axis 0) or columns (axis 1) of x under one position of the kernel.
constexpr PoolRange pool_range(const Pool2dArgs& args, std::uint32_t axis, std::uint64_t place) {
  const std::uint64_t begin = place * args.stride[axis];
  const std::uint64_t before = args.padding[axis];
  const std::uint64_t end = begin + args.kernel[axis] - before;
  const std::uint64_t pixels = args.x.extents[2 + axis];
  return {begin < before ? 0 : begin - before, end < pixels ? end : pixels};
}

}  // namespace shunt
#endif
