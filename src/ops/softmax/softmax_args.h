// Arguments of softmax: exp(scale x + mask) / sum, per row. The mask is broadcast along missing leading axes. A row
// whose scores are all -infinity becomes zeros.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(SoftmaxArgs) {
  StridedTensor x;  // the contiguous result has its extents and dtype
  SHUNT_U32S(4, mask_strides);
  SHUNT_U32(has_mask);
  SHUNT_U32(mask_dtype);
  SHUNT_F32(scale);
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(SoftmaxArgs, 80)
