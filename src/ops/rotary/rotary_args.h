// Arguments of rotary position embedding, also within rotary_cache_write. Pair i of a head is rotated by position *
// base^(-2 i / dims) / factors[i] (RoFormer, https://arxiv.org/abs/2104.09864). Elements from `dims` on pass through.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(RotaryArgs) {
  StridedTensor x;  // [1, tokens, heads, head_dim]; the contiguous result has its extents and dtype
  SHUNT_U32(dims);  // rotated elements, even
  SHUNT_U32(halves);
  SHUNT_F32(base);
  SHUNT_U32(has_factors);
  SHUNT_U32(position_stride);
  SHUNT_U32(factor_stride);
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(RotaryArgs, 80)

// The CUDA kernel for F32 (cache/cache_pairs.early.cu): heads of a token whose pairs a thread rotates, and the threads
// of a block.
SHUNT_ARGS_CONSTANT(kRotaryHeads, 4)
SHUNT_ARGS_CONSTANT(kRotaryThreads, 128)

#ifndef SHUNT_GLSL
namespace shunt {

// The two elements of pair i.
struct RotaryPair {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};
constexpr RotaryPair rotary_pair(const RotaryArgs& args, std::uint32_t i) {
  if (args.halves != 0) return {i, i + args.dims / 2};
  return {2 * i, 2 * i + 1};
}

// Returns how many groups of heads a token has.
constexpr std::uint32_t rotary_head_groups(const RotaryArgs& args) {
  return (args.x.extents[2] + kRotaryHeads - 1) / kRotaryHeads;
}

// Returns the blocks with a thread for each pair of such a group.
constexpr std::uint64_t rotary_pairs_blocks(const RotaryArgs& args) {
  const std::uint64_t tokens = std::uint64_t{args.x.extents[0]} * args.x.extents[1];
  return (tokens * rotary_head_groups(args) * (args.x.extents[3] / 2) + kRotaryThreads - 1) / kRotaryThreads;
}

}  // namespace shunt
#endif
