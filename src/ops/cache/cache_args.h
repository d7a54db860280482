// Arguments of cache_write and rotary_cache_write: rows of x, rotated or not, are converted to the state's dtype and
// written where the page table says. The state is changed in place: the result's memory is that of input 0. Tokens
// without a valid slot (padding) are ignored.
#pragma once

#include "ops/page_table_args.h"
#include "ops/rotary/rotary_args.h"

SHUNT_ARGS(CacheArgs) {
  RotaryArgs rotary;  // x, and its rotation if `rotates`
  PageTable table;
  SHUNT_U32(rotates);
  SHUNT_U32(state_dtype);
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(CacheArgs, 128)
