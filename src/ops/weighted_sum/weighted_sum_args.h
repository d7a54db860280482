// Arguments of weighted_sum: out[r, c] = sum over j of weights[r, j] * x[r, j, c].
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(WeightedSumArgs) {
  StridedTensor weights;     // a row of the result for each of its rows
  SHUNT_U32S(4, x_strides);  // of x without its columns, whose axes are then those of weights
  SHUNT_U32(columns);
  SHUNT_U32(column_stride);  // of x
  SHUNT_U32(x_dtype);        // and of the result
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(WeightedSumArgs, 80)
