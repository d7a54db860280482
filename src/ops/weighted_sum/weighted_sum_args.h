// Arguments of weighted_sum: out[r, c] = sum over j of weights[r, j] * x[r, j, c].
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(WeightedSumArgs) {
  StridedTensor weights;     // each of its rows gives a row of the result
  SHUNT_U32S(4, x_strides);  // of x without its columns; the remaining axes are those of weights
  SHUNT_U32(columns);
  SHUNT_U32(column_stride);  // of x
  SHUNT_U32(x_dtype);        // and of the result
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(WeightedSumArgs, 80)

// The CUDA kernel for rows of F32: the threads of a block.
SHUNT_ARGS_CONSTANT(kWeightedSumFoursThreads, 128)
