// Block sizes of the SIMD attention kernel, and how the tokens of a step are divided into work.
//
// A block is a run of neighbouring tokens of one sequence; a group is some query heads of one key head. The rows of a
// block and a group (token after token, head after head) share keys and values, which are converted to F32 once per
// tile for all of them. A slab is as many of these rows as are multiplied by a tile at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/attention.h"

namespace shunt::attention {

inline constexpr std::size_t kTileKeys = 96;
// Rows whose scores of a tile are computed, weighed and used while they stay in the first-level cache.
inline constexpr std::size_t kSlabRows = 48;
// Rows, at most, that share the conversion of a tile.
inline constexpr std::size_t kBlockRows = 4 * kSlabRows;
// Blocks are halved, down to one slab, while a share would have fewer items, each a block and a group, than this.
inline constexpr std::uint32_t kItemsPerShare = 4;
// Rows of results that a product keeps in registers.
inline constexpr std::size_t kMultiplyRows = 6;
static_assert(kSlabRows % kMultiplyRows == 0 && kTileKeys % kMultiplyRows == 0);
static_assert(kSlabRows % 16 == 0 && kTileKeys % 16 == 0, "they are whole vectors");
// Up to this many rows use one dot product per key; more are multiplied as matrices.
inline constexpr std::size_t kFewRows = 4;

// How heads are grouped. Groups get smaller if there would otherwise be fewer of them than shares.
struct Groups {
  std::uint32_t count = 1;         // over all key heads
  std::uint32_t heads = 1;         // query heads of each
  std::uint32_t block_tokens = 1;  // at most, per block
};
[[nodiscard]] Groups groups_of(const AttentionArgs& args, std::uint64_t tokens, std::uint32_t shares);

struct Block {
  std::uint64_t first = 0;  // first token
  std::uint32_t tokens = 0;
  std::int32_t sequence = 0;
  std::uint64_t begin = 0;    // first position that one of the tokens sees
  std::uint64_t visible = 0;  // one past the last of them
  std::uint64_t cost = 0;     // of one group, in rows and positions
};

// The index tensors of a step.
struct StepIndices {
  const std::int32_t* positions = nullptr;
  const std::int32_t* sequences = nullptr;
  const std::int32_t* pages = nullptr;

  [[nodiscard]] std::int32_t position(const PageTable& table, std::uint64_t token) const {
    return positions[token * table.position_stride];
  }
  [[nodiscard]] std::int32_t sequence(const PageTable& table, std::uint64_t token) const {
    return sequences[token * table.sequence_stride];
  }
  [[nodiscard]] std::uint64_t visible(const PageTable& table, std::uint64_t token) const {
    return visible_positions(table, sequence(table, token), position(table, token));
  }
  [[nodiscard]] std::uint64_t first(const AttentionArgs& args, std::uint64_t token) const {
    return first_position(args, position(args.table, token));
  }
};

// Returns the block that begins at token `first`. REQUIRES: first < tokens.
[[nodiscard]] Block block_at(const AttentionArgs& args, const StepIndices& step, const Groups& groups,
                             std::uint64_t first, std::uint64_t tokens);

// The items of one share when blocks follow each other and each is `groups` items of equal cost. An item belongs to the
// share in whose part of the whole cost its middle falls.
struct GroupRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
[[nodiscard]] GroupRange share_of_block(std::uint64_t cost_before, const Block& block, std::uint32_t groups,
                                        std::uint64_t whole_cost, std::uint32_t share, std::uint32_t shares);

inline std::size_t padded_width(std::size_t head_dim) { return (head_dim + 15) / 16 * 16; }

// Floats from one row of a tile to the next. The gap spreads equal columns of the rows over the sets of a cache.
inline std::size_t tile_pitch(std::size_t width) { return width + 16; }

// Each thread's scratch of floats, aligned to 64 bytes.
struct Scratch {
  float* query = nullptr;    // few rows: [kSlabRows, width]; many: [kBlockRows / kSlabRows, width, kSlabRows]
  float* sums = nullptr;     // [kBlockRows, width]
  float* keys = nullptr;     // [kTileKeys, pitch]
  float* values = nullptr;   // [kTileKeys, pitch]
  float* scores = nullptr;   // few rows: [kSlabRows, kTileKeys]; many: [kTileKeys, kSlabRows] of the current slab
  float* largest = nullptr;  // [kBlockRows], the largest score so far
  float* totals = nullptr;   // [kBlockRows], the sum of weights relative to it
};
[[nodiscard]] std::uint64_t scratch_bytes(std::size_t width);
[[nodiscard]] Scratch scratch_at(std::byte* memory, std::size_t width);

}  // namespace shunt::attention
