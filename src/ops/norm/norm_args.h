// Arguments of rms_norm and rms_norm_mul: x / sqrt(mean(x^2) + epsilon), per row, times a weight that is broadcast
// along missing leading axes.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(NormArgs) {
  StridedTensor x;  // the contiguous result has its extents and dtype
  SHUNT_U32S(4, weight_strides);
  SHUNT_U32(has_weight);
  SHUNT_U32(weight_dtype);
  SHUNT_F32(epsilon);
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(NormArgs, 80)

// The most groups of four elements that an invocation of the Vulkan kernel keeps.
SHUNT_ARGS_CONSTANT(kNormRowFours, 16)
// The CUDA kernel for rows of F32: the threads of a block.
SHUNT_ARGS_CONSTANT(kNormRowThreads, 256)
