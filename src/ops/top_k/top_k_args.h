// Arguments of top_k: per row of x the indices of its k largest elements, as I32; of equals the lower index first,
// NaN last.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(TopKArgs) {
  StridedTensor x;
  SHUNT_U32(k);
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(TopKArgs, 64)

// Columns that an invocation of top_k_rank.comp compares in a round.
SHUNT_ARGS_CONSTANT(kTopKAtOnce, 4)
