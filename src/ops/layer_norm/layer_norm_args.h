// Arguments of layer_norm: (x - mean) / sqrt(variance + epsilon), per row.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(LayerNormArgs) {
  StridedTensor x;  // the contiguous result has its extents and dtype
  SHUNT_F32(epsilon);
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(LayerNormArgs, 64)
