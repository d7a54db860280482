// Arguments of cache_write and rotary_cache_write: rows of x, rotated or not, are converted to the state's dtype and
// written where the page table says. The state is changed in place: the result's memory is that of input 0. Tokens
// without a valid slot (padding) are ignored. One kernel runs rotary too, which writes no state.
#pragma once

#include "ops/page_table_args.h"
#include "ops/rotary/rotary_args.h"

SHUNT_ARGS(CacheArgs) {
  RotaryArgs rotary;  // x, and its rotation if `rotates`
  PageTable table;
  SHUNT_U32(rotates);
  SHUNT_U32(state_dtype);  // of the result
  SHUNT_U32(writes_state);
  SHUNT_U32(x_input);  // x's number; positions, and factors of rotary alone, follow it
};
SHUNT_ARGS_BYTES(CacheArgs, 128)
