#include "ops/attention/tile.h"

#include <algorithm>

namespace shunt::attention {

Groups groups_of(const AttentionArgs& args, std::uint64_t tokens, std::uint32_t shares) {
  const std::uint32_t heads = args.query.extents[2] / args.kv_heads;
  Groups groups;
  const auto items = [&](std::uint64_t block_tokens) {
    return (tokens + block_tokens - 1) / block_tokens * groups.count;
  };
  for (std::uint32_t parts = 1; parts <= heads; ++parts) {
    if (heads % parts != 0) continue;
    groups.heads = heads / parts;
    groups.count = args.kv_heads * parts;
    groups.block_tokens = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(kSlabRows) / groups.heads);
    if (groups.heads <= kSlabRows && items(groups.block_tokens) >= shares) break;
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
  for (std::uint64_t token = first; token < tokens && block.tokens < groups.block_tokens; ++token) {
    if (step.sequence(args.table, token) != block.sequence) break;
    const std::uint64_t visible = step.visible(args.table, token);
    const std::uint64_t begin = std::min(step.first(args, token), visible);
    // A token that sees nothing does not limit where to begin.
    if (visible != 0) block.begin = block.visible == 0 ? begin : std::min(block.begin, begin);
    block.visible = std::max(block.visible, visible);
    block.cost += visible - begin + kRowCost;
    ++block.tokens;
  }
  return block;
}

GroupRange share_of_block(std::uint64_t cost_before, const Block& block, std::uint32_t groups, std::uint64_t whole_cost,
                          std::uint32_t share, std::uint32_t shares) {
  // The middle of group g is at cost_before + (g + 1/2) cost; everything is doubled to stay in whole numbers.
  const auto first_from = [&](std::uint64_t boundary) {
    const std::uint64_t start = 2 * cost_before + block.cost;
    if (2 * boundary <= start) return std::uint32_t{0};
    const std::uint64_t step = 2 * block.cost;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(groups, (2 * boundary - start + step - 1) / step));
  };
  GroupRange range;
  range.begin = first_from(whole_cost * share / shares);
  range.end = share + 1 == shares ? groups : first_from(whole_cost * (share + 1) / shares);
  return range;
}

std::uint64_t scratch_bytes(std::size_t width) {
  const std::size_t floats =
      2 * kBlockRows * width + 2 * kTileKeys * tile_pitch(width) + kSlabRows * kTileKeys + 2 * kBlockRows;
  return floats * sizeof(float);
}

Scratch scratch_at(std::byte* memory, std::size_t width) {
  Scratch scratch;
  scratch.query = reinterpret_cast<float*>(memory);
  scratch.sums = scratch.query + kBlockRows * width;
  scratch.keys = scratch.sums + kBlockRows * width;
  scratch.values = scratch.keys + kTileKeys * tile_pitch(width);
  scratch.scores = scratch.values + kTileKeys * tile_pitch(width);
  scratch.largest = scratch.scores + kSlabRows * kTileKeys;
  scratch.totals = scratch.largest + kBlockRows;
  return scratch;
}

}  // namespace shunt::attention
