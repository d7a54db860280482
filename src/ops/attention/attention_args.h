// Arguments of attention over paged keys and values with grouped heads. Token t sees positions 0 .. positions[t] of its
// sequence, up to the capacity of the page table. Positions without a valid page are skipped, and a token that sees
// nothing yields zeros. A window keeps only the last positions. A soft cap of c turns scores into c tanh(score / c). A
// sink adds one score per head, without a value.
#pragma once

#include "ops/page_table_args.h"
#include "ops/strided_args.h"

SHUNT_ARGS(AttentionArgs) {
  StridedTensor query;  // [1, tokens, heads, head_dim]; the contiguous F32 result has its extents
  PageTable table;
  SHUNT_U32(kv_heads);
  SHUNT_U32(state_dtype);
  SHUNT_F32(scale);
  SHUNT_F32(soft_cap);  // 0: none
  SHUNT_U32(window);    // 0: none
  SHUNT_U32(has_sinks);
  SHUNT_U32(sink_stride);
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(AttentionArgs, 112)

// Elements of a head that a group of the CUDA and GLSL kernels sums at once.
SHUNT_ARGS_CONSTANT(kHeadPart, 256)
// Threads per block of the CUDA kernel for heads of up to kHeadPart elements of 16 bits.
SHUNT_ARGS_CONSTANT(kAttentionRowThreads, 256)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns how many leading positions a token sees; 0 for padding.
constexpr std::uint64_t visible_positions(const PageTable& table, std::int32_t sequence, std::int32_t position) {
  if (position < 0) return 0;
  const std::uint64_t capacity = sequence_capacity(table, sequence);
  const std::uint64_t wanted = static_cast<std::uint64_t>(position) + 1;
  return wanted < capacity ? wanted : capacity;
}

// Returns the first position that a token sees, if it sees any.
constexpr std::uint64_t first_position(const AttentionArgs& args, std::int32_t position) {
  if (args.window == 0 || position < 0) return 0;
  const std::uint64_t wanted = static_cast<std::uint64_t>(position) + 1;
  return wanted > args.window ? wanted - args.window : 0;
}

}  // namespace shunt
#endif
