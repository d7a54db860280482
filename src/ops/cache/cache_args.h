// Arguments of cache_write and rotary_cache_write: rows of x, rotated or not, converted to the state's dtype
// and put where the page table says. The state is changed in place: the result's memory is that of input 0.
// A token without a valid slot (padding) is ignored. Plain data, shared by C++, CUDA and (field by field) the shaders'
// uniform block.
#pragma once

#include <cstdint>

#include "ops/page_table_args.h"
#include "ops/rotary/rotary_args.h"

namespace shunt {

struct CacheArgs {
  RotaryArgs rotary;  // x, and how it is turned where `rotates`
  PageTable table;
  std::uint32_t rotates = 0;
  std::uint32_t state_dtype = 0;
  std::uint32_t reserved[2] = {0, 0};
};
static_assert(sizeof(CacheArgs) == 128);

}  // namespace shunt
