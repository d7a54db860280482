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
// The kernel that splits positions over blocks: rows of a tile, and its threads.
SHUNT_ARGS_CONSTANT(kAttentionSplitRows, 8)
SHUNT_ARGS_CONSTANT(kAttentionSplitThreads, 256)
// The least positions that it makes a block of its own for, and the blocks that keep a large GPU busy: one for each of
// an H100's 132 multiprocessors.
SHUNT_ARGS_CONSTANT(kAttentionSplitPositions, 128)
SHUNT_ARGS_CONSTANT(kAttentionSplitEnough, 132)
SHUNT_ARGS_CONSTANT(kAttentionMostSplits, 64)

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

// How attention_split divides a step. A tile is up to eight rows of queries, of neighbouring tokens and of heads that
// share a key head; several blocks may share its positions. They leave what they found in scratch memory: [splits,
// tiles, rows] of head_dim sums and four more numbers. At most kAttentionSplitEnough / 2 tiles have more than one
// block.
struct AttentionSplit {
  std::uint32_t group = 1;   // query heads per key head
  std::uint32_t heads = 1;   // of a tile
  std::uint32_t tokens = 1;  // of a tile
  std::uint32_t parts = 1;   // tiles over which a group is spread
  std::uint32_t tiles = 0;
  std::uint32_t splits = 1;  // blocks per tile
};
constexpr AttentionSplit attention_split(const AttentionArgs& args) {
  AttentionSplit split;
  split.group = args.query.extents[2] / args.kv_heads;
  split.heads = split.group < kAttentionSplitRows ? split.group : kAttentionSplitRows;
  split.tokens = kAttentionSplitRows / split.heads;
  split.parts = (split.group + kAttentionSplitRows - 1) / kAttentionSplitRows;
  split.tiles = (args.query.extents[1] + split.tokens - 1) / split.tokens * args.kv_heads * split.parts;
  if (split.tiles == 0) return split;
  const std::uint64_t positions = std::uint64_t{args.table.sequence_pages} * args.table.page_tokens * split.tokens;
  const std::uint64_t wanted = kAttentionSplitEnough / split.tiles;
  const std::uint64_t most = (positions + kAttentionSplitPositions - 1) / kAttentionSplitPositions;
  const std::uint64_t fewer = wanted < most ? wanted : most;
  const std::uint64_t splits = fewer < kAttentionMostSplits ? fewer : kAttentionMostSplits;
  split.splits = splits > 1 ? static_cast<std::uint32_t>(splits) : 1;
  return split;
}
// Returns how many floats a row has in scratch memory.
constexpr std::uint64_t attention_split_row_floats(std::uint32_t head_dim) { return std::uint64_t{head_dim} + 4; }
constexpr std::uint64_t attention_split_scratch_bytes(const AttentionArgs& args) {
  const AttentionSplit split = attention_split(args);
  if (split.splits == 1) return 0;
  return std::uint64_t{split.splits} * split.tiles * kAttentionSplitRows *
         attention_split_row_floats(args.query.extents[3]) * sizeof(float);
}

// How attention_tile computes heads of one size. A tile is the rows of queries of some tokens and of the heads that
// share a key head, 16 per warp; a step of it takes some positions. A query is the sum of `parts` 16-bit numbers.
struct AttentionTile {
  std::uint32_t warps = 8;
  std::uint32_t positions = 64;  // of a step
  bool keeps_query = true;       // in registers; otherwise in shared memory
  [[nodiscard]] constexpr std::uint32_t threads() const { return warps * 32; }
  [[nodiscard]] constexpr std::uint32_t rows() const { return warps * 16; }
};
constexpr AttentionTile attention_tile(std::uint32_t head_dim, std::uint32_t parts) {
  AttentionTile tile;
  tile.warps = head_dim > 192 && parts > 1 ? 4 : 8;
  tile.positions = head_dim > 128 ? 32 : 64;
  tile.keeps_query = head_dim / 4 * parts + head_dim / 2 <= 144;
  return tile;
}
// Bytes from one cached row to the next in shared memory: the 16 bytes at the same place of eight rows lie in different
// banks.
constexpr std::uint32_t attention_tile_pitch(std::uint32_t head_dim) { return head_dim * 2 + 16; }
// Returns the shared memory that the host must give: two steps of keys and values, and queries.
constexpr std::uint32_t attention_tile_shared_bytes(std::uint32_t head_dim, std::uint32_t parts) {
  const AttentionTile tile = attention_tile(head_dim, parts);
  const std::uint32_t queries = tile.keeps_query ? 0 : tile.rows() * head_dim * 2 * parts;
  return 4 * tile.positions * attention_tile_pitch(head_dim) + queries;
}
constexpr std::uint64_t attention_tile_blocks(const AttentionArgs& args, std::uint32_t parts) {
  const std::uint32_t tokens =
      attention_tile(args.query.extents[3], parts).rows() / (args.query.extents[2] / args.kv_heads);
  return std::uint64_t{(args.query.extents[1] + tokens - 1) / tokens} * args.kv_heads;
}

}  // namespace shunt
#endif
