// Arguments of take: elements of each row of x by that row's indices; an index that x has not gives 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(TakeArgs) {
  StridedTensor x;
  SHUNT_U32S(4, id_strides);  // of ids, whose axes but the last are those of x
  SHUNT_U32(count);           // indices of each row
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(TakeArgs, 80)
