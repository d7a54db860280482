// Arguments of copy: x of any strides -> contiguous, converted. Bits are kept where the dtype is. An integer is cut
// towards zero, and what its dtype cannot hold becomes the nearest that it can; NaN becomes 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(CopyArgs) {
  StridedTensor x;
  SHUNT_U32(to);            // the number of a DType
  SHUNT_U32(words_of_row);  // where contiguous x is copied as it is, and its rows are whole words; else 0
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(CopyArgs, 64)
