// The tiles of attention_split: rows of queries that share a key head, and the positions that their tokens see.
#pragma once

#include "ops/attention/score.cuh"
#include "ops/collective.cuh"

namespace shunt {
namespace {

using namespace attention;

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRows = kAttentionSplitRows;
constexpr std::uint32_t kUnit = 16;   // positions that a warp takes at once
constexpr std::uint32_t kNone = ~0U;  // no slot

// The block's tile, and its number among those of the tile.
struct Tile {
  AttentionSplit split;
  std::uint32_t number;
  std::uint32_t share;
  std::uint32_t kv_head;
  std::uint32_t first_token;
  std::uint32_t first_head;  // of the group
  std::uint32_t tokens;
  std::uint32_t heads;

  SHUNT_FUNCTION Tile(const CudaCall* call, const AttentionArgs& args) : split(attention_split(args)) {
    const auto block = static_cast<std::uint32_t>(group());
    share = block / split.tiles;
    number = block - share * split.tiles;
    const std::uint32_t rest = number / args.kv_heads;
    kv_head = number - rest * args.kv_heads;
    first_token = rest / split.parts * split.tokens;
    first_head = rest % split.parts * kRows;
    heads = split.group - first_head < split.heads ? split.group - first_head : split.heads;
    const std::uint32_t valid =
        valid_rows(args.query.entries, static_cast<Extent>(args.query.extent), parameters_of(call));
    const std::uint32_t left = first_token < valid ? valid - first_token : 0;
    tokens = left < split.tokens ? left : split.tokens;
  }
  SHUNT_FUNCTION bool has_row(std::uint32_t row) const { return row < tokens * heads; }
  // REQUIRES: has_row(row).
  SHUNT_FUNCTION std::uint32_t token(std::uint32_t row) const { return first_token + row / heads; }
  SHUNT_FUNCTION std::uint32_t head(std::uint32_t row) const {
    return kv_head * split.group + first_head + row % heads;
  }
};

// A thread's token of the tile, if it has one.
struct Token {
  std::int32_t position = -1;
  std::int32_t sequence = -1;

  SHUNT_FUNCTION Token(const CudaCall* call, const AttentionArgs& args, const Tile& tile) {
    if (lane() >= tile.tokens) return;
    const std::uint64_t number = std::uint64_t{tile.first_token} + lane();
    position = input_of<std::int32_t>(call, 3)[number * args.table.position_stride];
    sequence = input_of<std::int32_t>(call, 4)[number * args.table.sequence_stride];
  }
};

// Neighbouring tokens of one sequence, and the units of 16 positions that they see together.
struct Run {
  std::int32_t sequence;
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t units_before;  // in other runs
};

// The tokens of a block's tile.
struct Tokens {
  Visible visible[kRows];
  std::int32_t sequences[kRows];
  std::uint32_t runs_of[kRows];
  Run runs[kRows];
  std::uint32_t run_count;
  std::uint32_t units;

  // Call it with the thread's token. REQUIRES: all threads call it.
  SHUNT_FUNCTION void put(const AttentionArgs& args, const Tile& tile, const Token& token) {
    if (lane() < tile.tokens) {
      sequences[lane()] = token.sequence;
      visible[lane()] = visible_of(args, token.sequence, token.position);
    }
    sync_warp();
    if (lane() == 0) find_runs(tile.tokens);
  }

 private:
  SHUNT_FUNCTION void find_runs(std::uint32_t tokens) {
    run_count = 0;
    units = 0;
    for (std::uint32_t token = 0; token < tokens; ++run_count) {
      Run run{sequences[token], kNone, 0, units};
      for (; token < tokens && sequences[token] == run.sequence; ++token) {
        runs_of[token] = run_count;
        const Visible seen = visible[token];
        if (seen.end == 0) continue;
        run.first = seen.first < run.first ? seen.first : run.first;
        run.end = seen.end > run.end ? seen.end : run.end;
      }
      if (run.end != 0) units += (run.end - run.first + kUnit - 1) / kUnit;
      runs[run_count] = run;
    }
  }
};

// 16 positions of a run, of which those before `end` exist.
struct Unit {
  std::int32_t sequence = 0;
  std::uint32_t run = 0;
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  SHUNT_FUNCTION Unit(const Tokens& tokens, std::uint32_t number, bool exists) {
    if (!exists) return;
    while (run + 1 < tokens.run_count && tokens.runs[run + 1].units_before <= number) ++run;
    const Run& found = tokens.runs[run];
    sequence = found.sequence;
    first = found.first + (number - found.units_before) * kUnit;
    end = found.end;
  }
};

// The slots of a unit's positions that a thread needs: of its two keys, and of its four values and scores.
struct Slots {
  std::uint32_t keys[2];
  std::uint32_t values[4];

  // Returns the slot of position lane() % 16 of the unit.
  SHUNT_FUNCTION static std::uint32_t find(const PageTable& table, const std::int32_t* pages, const Unit& unit) {
    const std::uint32_t position = unit.first + lane() % kUnit;
    if (position >= unit.end) return kNone;
    return static_cast<std::uint32_t>(state_slot(table, pages, unit.sequence, static_cast<std::int64_t>(position)));
  }
  SHUNT_FUNCTION void share(std::uint32_t found) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) keys[i] = value_of_lane(found, lane() % kWarp / 4U + i * 8U);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) values[i] = value_of_lane(found, place_of(i));
  }
  // Returns the place in a unit of the thread's position i.
  SHUNT_FUNCTION static std::uint32_t place_of(std::uint32_t i) { return lane() % 4U * 2U + i % 2U + i / 2U * 8U; }
};

}  // namespace
}  // namespace shunt
