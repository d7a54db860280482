// Arguments of argsort: the indices that sort each row of x, as I32. Of equals the lower index comes first; NaN is
// last.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ArgsortArgs) { StridedTensor x; };
SHUNT_ARGS_BYTES(ArgsortArgs, 48)
