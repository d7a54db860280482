// Arguments of copy: converts x of any strides to a contiguous result. With the same dtype, bits are kept. Conversion
// to an integer truncates towards zero and saturates at the limits of the dtype; NaN becomes 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(CopyArgs) {
  StridedTensor x;
  SHUNT_U32(to);            // the number of a DType
  SHUNT_U32(words_of_row);  // 0 unless contiguous x is copied unchanged and its rows are whole words
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(CopyArgs, 64)
