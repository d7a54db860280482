// Arguments of take: elements of each row of x, selected by that row's indices. An index out of range gives 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(TakeArgs) {
  StridedTensor x;
  SHUNT_U32S(4, id_strides);  // of ids, whose axes except the last are those of x
  SHUNT_U32(count);           // indices per row
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(TakeArgs, 80)
