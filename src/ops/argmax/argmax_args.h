// Arguments of argmax: the first index of the largest element of each row of x, as I32. NaN never wins; a row of only
// NaN gives 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ArgmaxArgs) { StridedTensor x; };
SHUNT_ARGS_BYTES(ArgmaxArgs, 48)

// Threads per block of the CUDA kernel, and for rows of no more columns than kArgmaxShort.
SHUNT_ARGS_CONSTANT(kArgmaxThreads, 512)
SHUNT_ARGS_CONSTANT(kArgmaxThreadsOfShort, 32)
SHUNT_ARGS_CONSTANT(kArgmaxShort, 256)
