// Arguments of rotary position embedding, also within rotary_cache_write. Pair i of a head is turned by
// position * base^(-2 i / dims) / factors[i] (RoFormer, https://arxiv.org/abs/2104.09864); elements from
// `dims` on pass through. Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/strided_args.h"

namespace shunt {

struct RotaryArgs {
  StridedTensor x;         // [1, tokens, heads, head_dim]; the contiguous result has its extents and dtype
  std::uint32_t dims = 0;  // elements that are rotated, even
  std::uint32_t halves = 0;
  float base = 0;
  std::uint32_t has_factors = 0;
  std::uint32_t position_stride = 0;
  std::uint32_t factor_stride = 0;
  std::uint32_t reserved[2] = {0, 0};
};
static_assert(sizeof(RotaryArgs) == 80);

// The two elements of pair i.
struct RotaryPair {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};
constexpr RotaryPair rotary_pair(const RotaryArgs& args, std::uint32_t i) {
  if (args.halves != 0) return {i, i + args.dims / 2};
  return {2 * i, 2 * i + 1};
}

}  // namespace shunt
