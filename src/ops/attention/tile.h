// Block sizes of the SIMD attention kernel, and how the tokens of a step are divided into work.
//
// A block is a run of neighbouring tokens of one sequence; a group is some query heads of one key head. The rows of a
// block and a group (token after token, head after head) share keys and values. A slab is as many of these rows as are
// multiplied by a tile at a time. In a step of few tokens, the positions of a block are split into parts, whose results
// are merged. A row's result does not depend on the number of shares.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/arithmetic.h"
#include "ops/attention/attention.h"
#include "ops/kernel.h"
#include "ops/matrix_tiles.h"

namespace shunt::attention {

inline constexpr std::size_t kTileKeys = 96;
// Rows whose scores of a tile are computed, weighed and used while they stay in the first-level cache.
inline constexpr std::size_t kSlabRows = 48;
// Rows, at most, that share the conversion of a tile.
inline constexpr std::size_t kBlockRows = 4 * kSlabRows;
// Blocks are halved, down to one slab, while a share would have fewer items, each a block and a group, than this.
inline constexpr std::uint32_t kItemsPerShare = 4;
// Rows that matrix tiles multiply at a time, in place of a slab.
inline constexpr std::size_t kMatrixRows = 32;
static_assert(kMatrixRows <= kSlabRows && kBlockRows % kMatrixRows == 0);
// Rows of results that a product keeps in registers.
inline constexpr std::size_t kMultiplyRows = 6;
static_assert(kSlabRows % kMultiplyRows == 0 && kTileKeys % kMultiplyRows == 0);
static_assert(kSlabRows % 16 == 0 && kTileKeys % 16 == 0, "they are whole vectors");
// Up to this many rows of one key head use one dot product per key, if they are all of the sequence's neighbouring
// tokens; others are multiplied as matrices.
inline constexpr std::size_t kFewRows = 8;
// Parts, at most, of the positions of all tokens of a step together; and tiles, at least, of a part.
inline constexpr std::uint32_t kMostParts = 32;
inline constexpr std::uint64_t kTilesPerPart = 2;

// How heads are grouped, and tokens. Groups get smaller if there would otherwise be fewer items than shares; blocks do,
// too, but not where they have parts, whose limits depend on all of a block's tokens.
struct Groups {
  std::uint32_t count = 1;         // over all key heads
  std::uint32_t heads = 1;         // query heads of each
  std::uint32_t block_tokens = 1;  // at most, per block
  std::uint32_t most_parts = 1;    // at most, per block
};
[[nodiscard]] Groups groups_of(const AttentionArgs& args, std::uint64_t tokens, std::uint32_t shares);

struct Block {
  std::uint64_t first = 0;  // first token
  std::uint32_t tokens = 0;
  std::int32_t sequence = 0;
  std::uint64_t begin = 0;    // first position that one of the tokens sees
  std::uint64_t visible = 0;  // one past the last of them
  std::uint64_t cost = 0;     // of one group, in rows and positions
  bool few = false;           // its rows of one key head are at most kFewRows, and all of the run's
  std::uint32_t parts = 1;    // of its positions
};

struct alignas(16) AttentionSimdArgs {
  AttentionArgs attention;
  Arithmetic many;  // of many rows
};
// Returns whether a call has many rows that matrix tiles can multiply.
[[nodiscard]] bool suits_matrix_tiles(const OpCall& call);

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

// Returns the positions that a part of a block takes: whole tiles, but for the first and the last.
[[nodiscard]] Range positions_of(const Block& block, std::uint32_t part);

// Returns which of a block's items, each a group in a part, belong to one share. Blocks follow each other, and a
// block's items cost the same. An item belongs to the share in whose part of the whole cost its middle falls.
[[nodiscard]] Range share_of_block(std::uint64_t cost_before, std::uint64_t block_cost, std::uint64_t items,
                                   std::uint64_t whole_cost, std::uint32_t share, std::uint32_t shares);

inline std::size_t padded_width(std::size_t head_dim) { return (head_dim + 15) / 16 * 16; }

// Floats from one row of a tile to the next. The gap spreads equal columns of the rows over the sets of a cache.
inline std::size_t tile_pitch(std::size_t width) { return width + 16; }

// Each thread's scratch of floats, aligned to 64 bytes.
struct Scratch {
  float* query = nullptr;    // few rows: [kSlabRows, width]; many: [kBlockRows / kSlabRows, width, kSlabRows]
  float* sums = nullptr;     // [kBlockRows, width]; by matrix tiles: [kBlockRows / kMatrixRows, width, kMatrixRows]
  float* keys = nullptr;     // [kTileKeys, pitch]
  float* values = nullptr;   // [kTileKeys, pitch]
  float* scores = nullptr;   // [2, kTileKeys, kSlabRows], of the current slab; of the tile before, too, for few rows
  float* largest = nullptr;  // [kBlockRows], the largest score so far
  float* totals = nullptr;   // [kBlockRows], the sum of weights relative to it
};
[[nodiscard]] std::uint64_t scratch_bytes(std::size_t width);
[[nodiscard]] Scratch scratch_at(std::byte* memory, std::size_t width);

// Results of parts, in the shared scratch. A token's parts follow each other.
struct PartResults {
  float* sums = nullptr;     // [kMostParts, heads, width]
  float* largest = nullptr;  // [kMostParts, heads]
  float* totals = nullptr;   // [kMostParts, heads]
};
// Returns whether a step of the call may have parts.
[[nodiscard]] bool may_have_parts(const OpCall& call);
[[nodiscard]] std::uint64_t part_results_bytes(std::uint64_t heads, std::size_t width);
[[nodiscard]] PartResults part_results_at(std::byte* memory, std::uint64_t heads, std::size_t width);

}  // namespace shunt::attention
