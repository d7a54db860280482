// The tiles of attention_tile: the rows of some tokens and of the heads that share a key head, and what their tokens
// see.
#pragma once

#include "ops/attention/score.cuh"
#include "ops/collective.cuh"

namespace shunt {
namespace {

using namespace attention;

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kNone = ~0U;  // no slot
constexpr std::uint32_t kRing = 4;    // steps whose slots are remembered

// A kernel of this file.
template <std::uint32_t of_, std::uint32_t dim, std::uint32_t query_parts, std::uint32_t weight_parts>
struct Form {
  static constexpr AttentionTile kTile = attention_tile(dim, query_parts);
  static constexpr bool kInBlocks = of_ == dtype::Q8_0;
  static constexpr std::uint32_t kCached = of_;
  static constexpr std::uint32_t kOf = kInBlocks ? std::uint32_t{dtype::F16} : of_;  // of the products
  static constexpr std::uint32_t kDim = dim;
  static constexpr std::uint32_t kQueryParts = query_parts;
  static constexpr std::uint32_t kWeightParts = weight_parts;
  static constexpr std::uint32_t kRows = kTile.rows();
  static constexpr std::uint32_t kThreads = kTile.threads();
  static constexpr std::uint32_t kPositions = kTile.positions;
  static constexpr std::uint32_t kPitch = attention_tile_pitch(dim);
  static constexpr std::uint32_t kStepBytes = kPositions * kPitch;  // of keys, and of values
  static constexpr std::uint32_t kColumns = dim / 16;               // products along a head
};

// The tokens and heads of a block.
struct Place {
  std::uint32_t group;  // query heads per key head
  std::uint32_t kv_head;
  std::uint32_t first_token;
  std::uint32_t tokens;

  // Tiles of the last tokens come first: they take the longest.
  SHUNT_FUNCTION Place(const CudaCall* call, const AttentionArgs& args, std::uint32_t rows) {
    group = args.query.extents[2] / args.kv_heads;
    const std::uint32_t tokens_of_tile = rows / group;
    const std::uint32_t tiles = (args.query.extents[1] + tokens_of_tile - 1) / tokens_of_tile;
    const auto block = static_cast<std::uint32_t>(shunt::group());
    kv_head = block % args.kv_heads;
    first_token = (tiles - 1 - block / args.kv_heads) * tokens_of_tile;
    const std::uint32_t valid =
        valid_rows(args.query.entries, static_cast<Extent>(args.query.extent), parameters_of(call));
    const std::uint32_t left = first_token < valid ? valid - first_token : 0;
    tokens = left < tokens_of_tile ? left : tokens_of_tile;
  }
  SHUNT_FUNCTION bool has_row(std::uint32_t row) const { return row < tokens * group; }
  SHUNT_FUNCTION std::uint32_t token(std::uint32_t row) const { return first_token + row / group; }
  SHUNT_FUNCTION std::uint32_t head(std::uint32_t row) const { return kv_head * group + row % group; }
};

// Neighbouring tokens of one sequence, and the positions that they see.
struct Run {
  std::uint32_t first_token;  // of the tile's
  std::uint32_t end_token;
  std::int32_t sequence;
  std::uint32_t first;  // position that any of them sees
  std::uint32_t end;
  std::uint32_t all_first;  // positions from here to all_end - 1 are seen by all of them
  std::uint32_t all_end;
};

template <std::uint32_t rows>
struct Tokens {
  Visible visible[rows];
  std::int32_t sequences[rows];

  SHUNT_FUNCTION void read(const CudaCall* call, const AttentionArgs& args, const Place& place) {
    if (lane() >= place.tokens) return;
    const std::uint64_t token = std::uint64_t{place.first_token} + lane();
    const std::int32_t position = input_of<std::int32_t>(call, 3)[token * args.table.position_stride];
    const std::int32_t sequence = input_of<std::int32_t>(call, 4)[token * args.table.sequence_stride];
    sequences[lane()] = sequence;
    visible[lane()] = visible_of(args, sequence, position);
  }

  // Returns the run that begins at `first_token`, to each thread of the warp.
  SHUNT_FUNCTION Run run_at(std::uint32_t first_token, std::uint32_t tokens) const {
    Run run{first_token, tokens, sequences[first_token], kNone, 0, 0, kNone};
    for (std::uint32_t i = first_token + lane() % kWarp; i < tokens; i += kWarp)
      if (sequences[i] != run.sequence && i < run.end_token) run.end_token = i;
    run.end_token = smallest_of_warp(run.end_token);
    for (std::uint32_t i = first_token + lane() % kWarp; i < run.end_token; i += kWarp) {
      const Visible seen = visible[i];
      run.all_first = seen.first > run.all_first ? seen.first : run.all_first;
      run.all_end = seen.end < run.all_end ? seen.end : run.all_end;
      if (seen.end == 0) continue;
      run.first = seen.first < run.first ? seen.first : run.first;
      run.end = seen.end > run.end ? seen.end : run.end;
    }
    run.first = smallest_of_warp(run.first);
    run.end = largest_of_warp(run.end);
    run.all_first = largest_of_warp(run.all_first);
    run.all_end = smallest_of_warp(run.all_end);
    return run;
  }
};

}  // namespace
}  // namespace shunt
