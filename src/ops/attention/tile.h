// Block sizes of the SIMD attention kernel, and how the tokens of a step are divided into work.
//
// A block is a run of neighbouring tokens of one sequence; a group is some query heads of one key head. The rows of a
// block and a group (token after token, head after head) share keys and values, which are converted to F32 once per
// tile for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/attention/attention.h"

namespace shunt::attention {

inline constexpr std::size_t kTileKeys = 64;
inline constexpr std::size_t kMultiplyRows = 6;
inline constexpr std::size_t kBlockRows = 48;
static_assert(kBlockRows % kMultiplyRows == 0);
// Up to this many rows use one dot product per key; more are multiplied as matrices.
inline constexpr std::size_t kFewRows = 4;

// State of the online softmax of one row.
struct RowState {
  float largest = std::numeric_limits<float>::lowest();
  float total = 0;
};

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

// Each thread's scratch of floats, aligned to 64 bytes.
struct Scratch {
  float* query = nullptr;      // [kBlockRows, width]
  float* sums = nullptr;       // [kBlockRows, width]
  float* rows = nullptr;       // [kTileKeys, width], keys or values
  float* columns = nullptr;    // [width, kTileKeys], keys transposed
  float* scores = nullptr;     // [kBlockRows, kTileKeys]
  RowState* states = nullptr;  // [kBlockRows]
};
[[nodiscard]] std::uint64_t scratch_bytes(std::size_t width);
[[nodiscard]] Scratch scratch_at(std::byte* memory, std::size_t width);

}  // namespace shunt::attention
