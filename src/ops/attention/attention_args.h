// Arguments of attention over paged keys and values with grouped heads: token t sees positions 0 .. positions[t]
// of its sequence, as far as the table holds them; positions without a valid page are left out, and a token
// that sees nothing becomes zeros. Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/page_table_args.h"
#include "ops/strided_args.h"

namespace shunt {

struct AttentionArgs {
  StridedTensor query;  // [1, tokens, heads, head_dim]; the contiguous F32 result has its extents
  PageTable table;
  std::uint32_t kv_heads = 1;
  std::uint32_t state_dtype = 0;
  float scale = 1;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(AttentionArgs) == 96);

// Elements of the largest head that the CUDA kernel takes.
inline constexpr std::uint32_t kLargestCudaHead = 256;

// How many leading positions a token sees; 0 for padding.
constexpr std::uint64_t visible_positions(const PageTable& table, std::int32_t sequence, std::int32_t position) {
  if (position < 0) return 0;
  const std::uint64_t capacity = sequence_capacity(table, sequence);
  const std::uint64_t wanted = static_cast<std::uint64_t>(position) + 1;
  return wanted < capacity ? wanted : capacity;
}

}  // namespace shunt
