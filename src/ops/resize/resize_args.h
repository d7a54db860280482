// Arguments of resize_nearest and resize_bilinear. Pixel i of n of the result lies at (i + 1/2) in / n - 1/2 of x, in
// pixels of x.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ResizeArgs) {
  StridedTensor x;      // [images, channels, height, width]; the contiguous result has its dtype
  SHUNT_U32S(2, size);  // height and width
  SHUNT_U32(is_linear);
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(ResizeArgs, 64)
