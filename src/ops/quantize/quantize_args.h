// Arguments of quantize (floats -> blocks) and dequantize (blocks -> floats): rows of x are contiguous, and so is the
// result, in another dtype.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(QuantizeArgs) {
  StridedTensor x;  // strides count elements, even for quantized dtypes
  SHUNT_U32(to);    // the number of a DType
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(QuantizeArgs, 64)
