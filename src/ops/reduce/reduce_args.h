// Arguments of reduce_sum, reduce_mean, reduce_max and dot: one result for each row of x, in x's dtype.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ReduceArgs) {
  StridedTensor x;
  SHUNT_U32S(4, b_strides);  // dot: of b, broadcast to the extents of x
  SHUNT_U32(kind);           // one of the constants below
  SHUNT_U32(b_dtype);
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(ReduceArgs, 80)

SHUNT_ARGS_CONSTANT(kReduceSum, 0)
SHUNT_ARGS_CONSTANT(kReduceMean, 1)
SHUNT_ARGS_CONSTANT(kReduceMax, 2)
SHUNT_ARGS_CONSTANT(kReduceDot, 3)
