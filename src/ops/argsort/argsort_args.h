// Arguments of argsort: per row of x the indices that sort it, as I32; of equals the lower index first, NaN last.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ArgsortArgs) { StridedTensor x; };
SHUNT_ARGS_BYTES(ArgsortArgs, 48)
