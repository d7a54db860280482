// Arguments of every elementwise row: its operands and attributes.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS_CONSTANT(kMaxElementwiseOperands, 8)

SHUNT_ARGS(ElementwiseArgs) {
  StridedTensor x;  // operand 0; the contiguous result has its extents and dtype
  SHUNT_U32(op);    // the number of an Op
  SHUNT_U32(operands);
  SHUNT_U32S(2, reserved);
  SHUNT_U32S(4, strides[kMaxElementwiseOperands]);  // elements; 0 where an operand is broadcast
  SHUNT_U32S(8, dtypes);
  SHUNT_F32S(8, attributes);  // in the order of the row
};
SHUNT_ARGS_BYTES(ElementwiseArgs, 256)

// The CUDA kernel for contiguous operands of F32: the threads of a block.
SHUNT_ARGS_CONSTANT(kElementwiseFoursThreads, 256)
