// Arguments of cache_write and rotary_cache_write: rows of x, rotated or not, converted to the state's dtype
// and put where the page table says. The state is changed in place: the result's memory is that of input 0.
// A token without a valid slot (padding) is ignored. Plain data, laid out as the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/page_table.h"
#include "ops/rotary/rotary.h"

namespace shunt {

struct CacheArgs {
  RotaryArgs rotary;  // x, and how it is turned where `rotates`
  PageTable table;
  std::uint32_t rotates = 0;
  std::uint32_t state_dtype = 0;
  std::uint32_t reserved[2] = {0, 0};
};
static_assert(sizeof(CacheArgs) == 128);

[[nodiscard]] CacheArgs cache_arguments(const OpCall& call);

}  // namespace shunt
