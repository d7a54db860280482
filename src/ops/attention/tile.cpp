#include "ops/attention/tile.h"

#include <algorithm>

namespace shunt::attention {
namespace {

std::uint64_t tiles_of(const Block& block) {
  return (block.visible + kTileKeys - 1) / kTileKeys - block.begin / kTileKeys;
}

}  // namespace

Groups groups_of(const AttentionArgs& args, std::uint64_t tokens, std::uint32_t shares) {
  const std::uint32_t heads = args.query.extents[2] / args.kv_heads;
  Groups groups;
  if (tokens != 0 && tokens < kMostParts) groups.most_parts = kMostParts / static_cast<std::uint32_t>(tokens);
  const auto items = [&](std::uint64_t block_tokens) {
    return (tokens + block_tokens - 1) / block_tokens * groups.count * groups.most_parts;
  };
  for (std::uint32_t parts = 1; parts <= heads; ++parts) {
    if (heads % parts != 0) continue;
    groups.heads = heads / parts;
    groups.count = args.kv_heads * parts;
    groups.block_tokens = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(kSlabRows) / groups.heads);
    if (groups.heads <= kSlabRows && items(groups.block_tokens) >= shares) break;
  }
  if (groups.most_parts > 1) {
    groups.block_tokens = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(kBlockRows) / heads);
    return groups;
  }
  auto slabs = static_cast<std::uint32_t>(kBlockRows / kSlabRows);
  while (slabs > 1 && items(std::uint64_t{groups.block_tokens} * slabs) < std::uint64_t{kItemsPerShare} * shares)
    slabs /= 2;
  groups.block_tokens *= slabs;
  return groups;
}

// The cost of a row apart from its keys, in keys.
constexpr std::uint64_t kRowCost = 64;

Block block_at(const AttentionArgs& args, const StepIndices& step, const Groups& groups, std::uint64_t first,
               std::uint64_t tokens) {
  Block block{.first = first, .sequence = step.sequence(args.table, first)};
  const auto continues = [&](std::uint64_t token) { return step.sequence(args.table, token) == block.sequence; };
  std::uint64_t token = first;
  for (; token < tokens && block.tokens < groups.block_tokens && continues(token); ++token) {
    const std::uint64_t visible = step.visible(args.table, token);
    const std::uint64_t begin = std::min(step.first(args, token), visible);
    // A token that sees nothing does not limit where to begin.
    if (visible != 0) block.begin = block.visible == 0 ? begin : std::min(block.begin, begin);
    block.visible = std::max(block.visible, visible);
    block.cost += visible - begin + kRowCost;
    ++block.tokens;
  }
  const bool whole_run = (first == 0 || !continues(first - 1)) && (token == tokens || !continues(token));
  const std::size_t heads = args.query.extents[2] / args.kv_heads;
  block.few = whole_run && block.tokens * heads <= kFewRows;
  const std::uint64_t parts = tiles_of(block) / kTilesPerPart;
  block.parts = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(parts, 1, groups.most_parts));
  return block;
}

Range positions_of(const Block& block, std::uint32_t part) {
  const std::uint64_t first = block.begin / kTileKeys;
  const auto boundary = [&](std::uint32_t number) {
    return std::clamp((first + tiles_of(block) * number / block.parts) * kTileKeys, block.begin, block.visible);
  };
  return {boundary(part), boundary(part + 1)};
}

Range share_of_block(std::uint64_t cost_before, std::uint64_t block_cost, std::uint64_t items, std::uint64_t whole_cost,
                     std::uint32_t share, std::uint32_t shares) {
  // The middle of item i is at cost_before + (i + 1/2) block_cost / items; everything is multiplied by 2 items to stay
  // in whole numbers.
  const auto first_from = [&](std::uint64_t boundary) {
    if (boundary <= cost_before) return std::uint64_t{0};
    const std::uint64_t distance = 2 * items * (boundary - cost_before);
    return std::min(items, (distance + block_cost - 1) / (2 * block_cost));
  };
  return {first_from(whole_cost * share / shares),
          share + 1 == shares ? items : first_from(whole_cost * (share + 1) / shares)};
}

bool suits_matrix_tiles(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  const std::uint64_t rows = std::uint64_t{args.query.extents[1]} * args.query.extents[2] / args.kv_heads;
  return rows > kFewRows && args.query.extents[3] % kMatrixTileElements == 0;
}

std::uint64_t scratch_bytes(std::size_t width) {
  const std::size_t floats =
      2 * kBlockRows * width + 2 * kTileKeys * tile_pitch(width) + 2 * kSlabRows * kTileKeys + 2 * kBlockRows;
  return floats * sizeof(float);
}

Scratch scratch_at(std::byte* memory, std::size_t width) {
  Scratch scratch;
  scratch.query = reinterpret_cast<float*>(memory);
  scratch.sums = scratch.query + kBlockRows * width;
  scratch.keys = scratch.sums + kBlockRows * width;
  scratch.values = scratch.keys + kTileKeys * tile_pitch(width);
  scratch.scores = scratch.values + kTileKeys * tile_pitch(width);
  scratch.largest = scratch.scores + 2 * kSlabRows * kTileKeys;
  scratch.totals = scratch.largest + kBlockRows;
  return scratch;
}

bool may_have_parts(const OpCall& call) {
  // Tokens of a block may lie anywhere in their sequence, so that a window does not limit what they see together.
  const PageTable table = attention_arguments(call).table;
  const std::uint64_t positions = std::uint64_t{table.sequence_pages} * table.page_tokens;
  return (positions + kTileKeys - 1) / kTileKeys >= 2 * kTilesPerPart;
}

std::uint64_t part_results_bytes(std::uint64_t heads, std::size_t width) {
  return kMostParts * heads * (width + 2) * sizeof(float);
}

PartResults part_results_at(std::byte* memory, std::uint64_t heads, std::size_t width) {
  PartResults results;
  results.sums = reinterpret_cast<float*>(memory);
  results.largest = results.sums + kMostParts * heads * width;
  results.totals = results.largest + kMostParts * heads;
  return results;
}

}  // namespace shunt::attention
