// Arguments of top_k: the indices of the k largest elements of each row of x, as I32. Of equals the lower index comes
// first; NaN is last. And of top_values: the same elements, each followed by its index, as F32; NaN is first.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(TopKArgs) {
  StridedTensor x;
  SHUNT_U32(k);
  SHUNT_U32(with_values);  // 1: of top_values
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(TopKArgs, 64)

// Columns that an invocation of top_k_rank.comp compares per round.
SHUNT_ARGS_CONSTANT(kTopKAtOnce, 4)
// The CUDA kernel for short rows: the threads of a block, and the most columns of a row and places to find.
SHUNT_ARGS_CONSTANT(kTopKShortThreads, 128)
SHUNT_ARGS_CONSTANT(kTopKShortColumns, 256)
SHUNT_ARGS_CONSTANT(kTopKShortPlaces, 32)
