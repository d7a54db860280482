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
