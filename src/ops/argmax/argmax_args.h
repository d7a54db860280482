// Arguments of argmax: per row of x the first index of the largest element, as I32. NaN never wins; a row of
// nothing but NaN answers 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ArgmaxArgs) { StridedTensor x; };
SHUNT_ARGS_BYTES(ArgmaxArgs, 48)
