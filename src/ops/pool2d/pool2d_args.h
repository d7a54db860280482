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
