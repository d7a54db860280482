// Few rows of queries over many positions, on tensor cores, as exactly as in F32: the left operand of a product is up
// to eight rows of queries that share a key head, as the sum of several 16-bit numbers, which fill its other eight
// rows. Several blocks share the positions of a tile; the block that ends last adds up their sums, in the order of
// their numbers.
#include "ops/attention/split_operands.cuh"
#include "ops/early.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarps = kAttentionSplitThreads / kWarp;
constexpr std::uint32_t kLeastUnits = kAttentionSplitPositions / kUnit;  // of a block, if others take the rest
constexpr std::uint32_t kPlaces = 1U << 3U | 1U << 4U | 1U << 5U;        // the inputs that say where tokens are
constexpr std::uint32_t kItems = 8;                                      // sums that warps put together at once
static_assert(kAttentionSplitEnough / 2 * sizeof(std::uint32_t) <= kCudaCounterBytes);
static_assert(kWarps == kRows);  // a warp prepares each row

// The results of all blocks of a tile, as the last block reads them.
struct Found {
  float largest[kAttentionMostSplits][kRows];
  float totals[kAttentionMostSplits][kRows];
};

template <std::uint32_t of, std::uint32_t dim>
struct Shared {
  Tokens tokens;
  Queries<kKeysAs<of>, dim> queries;
  float largest[kWarps][kRows];
  float totals[kWarps][kRows];
  std::uint32_t order;
  union {
    FourFloats items[kWarps][kItems][kWarp];
    Found found;
  };
};

// Where a block leaves what it found of a row: the sums, then the largest score and the total.
SHUNT_FUNCTION float* found_row(const CudaCall* call, const Tile& tile, std::uint32_t dim, std::uint32_t share,
                                std::uint32_t row) {
  const std::uint64_t number = (std::uint64_t{share} * tile.split.tiles + tile.number) * kRows + row;
  return reinterpret_cast<float*>(call->scratch) + number * attention_split_row_floats(dim);
}

SHUNT_FUNCTION void store_four(float* to, const FourFloats& four) { *reinterpret_cast<FourFloats*>(to) = four; }

// Stores four elements of a row of the result from their sums.
SHUNT_FUNCTION void store_result(const CudaCall* call, const AttentionArgs& args, const Tile& tile, std::uint32_t row,
                                 std::uint32_t element, const FourFloats& sums, float largest, float total) {
  const std::uint32_t head = tile.head(row);
  const float sink = sink_score(call, args, head);
  const float top = kernel_math::larger(largest, sink);
  if (sink > kLeast) total = total * kernel_math::exp2(largest - top) + kernel_math::exp2(sink - top) * kSinkWeight;
  const float by = total == 0.0F ? 0.0F : kernel_math::exp2(largest - top) / total;
  FourFloats four;
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e) four.values[e] = total == 0.0F ? 0.0F : sums.values[e] * by;
  const std::uint64_t number = std::uint64_t{tile.token(row)} * args.query.extents[2] + head;
  store_four(output_of<float>(call) + number * args.query.extents[3] + element, four);
}

// Adds what the block's warps found and stores it: the result if no other block has a share of the tile.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void merge_warps(const CudaCall* call, const AttentionArgs& args, const Tile& tile, bool is_alone,
                                Shared<of, dim>& shared, Sums<of, dim>& sums) {
  const std::uint32_t warp = lane() / kWarp;
  const std::uint32_t row_of_thread = lane() % kWarp / 4U;
  SHUNT_UNROLL
  for (std::uint32_t mask = 1; mask < 4; mask *= 2) sums.total += from_lane(sums.total, mask);
  if (lane() % 4U == 0) {
    shared.largest[warp][row_of_thread] = sums.largest;
    shared.totals[warp][row_of_thread] = sums.total;
  }
  SHUNT_UNROLL
  for (std::uint32_t first = 0; first < dim / 16; first += kItems) {
    const std::uint32_t count = dim / 16 - first < kItems ? dim / 16 - first : kItems;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) shared.items[warp][i][lane() % kWarp] = sums.item(first + i);
    sync();
    if (warp < count && tile.has_row(row_of_thread)) {
      const std::uint32_t row = row_of_thread;
      float largest = kLeast;
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kWarps; ++w) largest = kernel_math::larger(largest, shared.largest[w][row]);
      float total = 0.0F;
      FourFloats sum{};
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kWarps; ++w) {
        const float factor = kernel_math::exp2(shared.largest[w][row] - largest);
        total += shared.totals[w][row] * factor;
        const FourFloats part = shared.items[w][warp][lane() % kWarp];
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] += part.values[e] * factor;
      }
      const std::uint32_t element = Sums<of, dim>::element_of(first + warp, lane() % 4U);
      if (is_alone) {
        store_result(call, args, tile, row, element, sum, largest, total);
      } else {
        float* const to = found_row(call, tile, dim, tile.share, row);
        store_four(to + element, sum);
        if (element == 0) store_four(to + dim, {{largest, total, 0.0F, 0.0F}});
      }
    }
    sync();
  }
}

// Adds what the blocks of a tile found, in the order of their numbers.
template <std::uint32_t dim>
SHUNT_FUNCTION void merge_blocks(const CudaCall* call, const AttentionArgs& args, const Tile& tile,
                                 std::uint32_t blocks, Found& found) {
  constexpr std::uint32_t kAtOnce = 8;
  constexpr std::uint32_t kFours = dim / 4;
  for (std::uint32_t i = lane(); i < blocks * kRows; i += kAttentionSplitThreads) {
    const std::uint32_t row = i % kRows;
    if (!tile.has_row(row)) continue;
    const auto four = __builtin_bit_cast(FourFloats, load_once(found_row(call, tile, dim, i / kRows, row) + dim));
    found.largest[i / kRows][row] = four.values[0];
    found.totals[i / kRows][row] = four.values[1];
  }
  sync();
  for (std::uint32_t i = lane(); i < kRows * kFours; i += kAttentionSplitThreads) {
    const std::uint32_t row = i / kFours;
    if (!tile.has_row(row)) continue;
    float largest = kLeast;
    for (std::uint32_t block = 0; block < blocks; ++block)
      largest = kernel_math::larger(largest, found.largest[block][row]);
    float total = 0.0F;
    FourFloats sum{};
    for (std::uint32_t first = 0; first < blocks; first += kAtOnce) {
      FourWords parts[kAtOnce];
      SHUNT_UNROLL
      for (std::uint32_t b = 0; b < kAtOnce; ++b) {
        parts[b] = {};
        if (first + b < blocks)
          parts[b] = load_once(found_row(call, tile, dim, first + b, row) + std::uint64_t{i % kFours} * 4U);
      }
      SHUNT_UNROLL
      for (std::uint32_t b = 0; b < kAtOnce; ++b) {
        if (first + b >= blocks) continue;
        const float factor = kernel_math::exp2(found.largest[first + b][row] - largest);
        total += found.totals[first + b][row] * factor;
        const auto part = __builtin_bit_cast(FourFloats, parts[b]);
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] += part.values[e] * factor;
      }
    }
    store_result(call, args, tile, row, i % kFours * 4U, sum, largest, total);
  }
}

// Prepares the queries, and takes in the units from `first` to `end` - 1, a warp every eighth. Waits for earlier
// kernels.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void take_in(const CudaCall* call, const AttentionArgs& args, const Tile& tile, Shared<of, dim>& shared,
                            std::uint32_t first, std::uint32_t end, Sums<of, dim>& sums) {
  constexpr bool kReadsAhead = dim <= 192;  // otherwise there are too few registers
  const PageTable table = args.table;
  const std::int32_t* const pages = input_of<std::int32_t>(call, 5);
  const Scoring scoring(args);
  const std::uint64_t slot_bytes = args.kv_heads * row_bytes(of, dim);
  const std::uint8_t* const keys_at = input_of<std::uint8_t>(call, 1) + tile.kv_head * row_bytes(of, dim);
  const std::uint8_t* const values_at = input_of<std::uint8_t>(call, 2) + tile.kv_head * row_bytes(of, dim);
  const std::uint32_t row = lane() % kWarp / 4U;
  const bool has_row = tile.has_row(row);
  const std::uint32_t token = has_row ? row / tile.heads : 0;
  const Visible visible = has_row ? shared.tokens.visible[token] : Visible{0, 0};
  const std::uint32_t run = shared.tokens.runs_of[token];

  std::uint32_t number = first + lane() / kWarp;
  Unit unit(shared.tokens, number, number < end);
  Slots slots;
  slots.share(Slots::find(table, pages, unit));
  wait_for_earlier_kernels();
  Keys<of, dim> keys;
  Values<of, dim> values;
  if constexpr (kReadsAhead) {
    keys.read(keys_at, slot_bytes, slots);
    values.read(values_at, slot_bytes, slots);
  }
  shared.queries.prepare(call, args, tile);
  sync();
  const float factors[2] = {shared.queries.factors[row], shared.queries.factors[row]};
  // All warps go round equally often; some find nothing in the last round.
  for (std::uint32_t round = first; round < end; round += kWarps) {
    number += kWarps;
    const Unit next_unit(shared.tokens, number, number < end);
    const std::uint32_t found = Slots::find(table, pages, next_unit);
    if constexpr (!kReadsAhead) keys.read(keys_at, slot_bytes, slots);
    float scores[1][4];
    multiply_keys<of, dim>(shared.queries, keys, scores);
    scoring.set(scores, factors);
    Slots next_slots;
    next_slots.share(found);
    if constexpr (kReadsAhead)
      keys.read(keys_at, slot_bytes, next_slots);
    else
      values.read(values_at, slot_bytes, slots);
    bool seen[4];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t position = unit.first + Slots::place_of(i);
      seen[i] = slots.values[i] != kNone && run == unit.run && position >= visible.first && position < visible.end;
    }
    float weights[4];
    weigh(sums, scores[0], seen, weights);
    add_values(sums, values, weights);
    if constexpr (kReadsAhead) values.read(values_at, slot_bytes, next_slots);
    unit = next_unit;
    slots = next_slots;
  }
}

// How the units of a tile are divided: blocks without a share leave at once, so that few positions need no merging.
struct Shares {
  std::uint32_t of_block = 0;  // units
  std::uint32_t blocks = 1;

  SHUNT_FUNCTION Shares(std::uint32_t units, std::uint32_t most) {
    const std::uint32_t wanted = (units + kLeastUnits - 1) / kLeastUnits;
    if (wanted == 0) return;
    const std::uint32_t fewer = wanted < most ? wanted : most;
    of_block = (units + fewer - 1) / fewer;
    blocks = (units + of_block - 1) / of_block;
  }
};

// Computes the block's share of a tile. Returns how many blocks have one, or 0 if nothing is left to do.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION std::uint32_t attend_share(const CudaCall* call, const AttentionArgs& args, const Tile& tile,
                                          Shared<of, dim>& shared) {
  wait_to_read(call, kPlaces);
  const Token token(call, args, tile);
  shared.tokens.put(args, tile, token);
  sync();
  const std::uint32_t units = shared.tokens.units;
  const Shares shares(units, tile.split.splits);
  if (tile.share >= shares.blocks) return 0;
  const std::uint32_t first = tile.share * shares.of_block;
  const std::uint32_t end = first + shares.of_block < units ? first + shares.of_block : units;
  Sums<of, dim> sums;
  take_in<of, dim>(call, args, tile, shared, first, end, sums);
  merge_warps<of, dim>(call, args, tile, shares.blocks == 1, shared, sums);
  return shares.blocks == 1 ? 0 : shares.blocks;
}

template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void attend(const CudaCall* call) {
  SHUNT_SHARED Shared<of, dim> shared;
  const auto& args = arguments_of<AttentionArgs>(call);
  let_next_kernel_begin();
  const Tile tile(call, args);
  if (tile.tokens == 0) return wait_for_earlier_kernels();
  const std::uint32_t blocks = attend_share<of, dim>(call, args, tile, shared);
  if (blocks == 0) return;
  if (lane() == 0) {
    std::uint32_t* const counter = reinterpret_cast<std::uint32_t*>(call->scratch - kCudaCounterBytes) + tile.number;
    shared.order = count_block(counter);
    if (shared.order + 1 == blocks) *counter = 0;
  }
  sync();
  if (shared.order + 1 == blocks) merge_blocks<dim>(call, args, tile, blocks, shared.found);
}

}  // namespace
}  // namespace shunt

#define SHUNT_SPLIT(of, dim)                                                                 \
  SHUNT_BOUNDED_KERNEL(attention_split_##dim##_##of, shunt::kAttentionSplitThreads, 1) {     \
    shunt::attend<shunt::dtype::of, dim>(shunt::call_in(launch_copies, launch_shares).call); \
  }
#define SHUNT_FOR_HEAD(dim) \
  SHUNT_SPLIT(F16, dim)     \
  SHUNT_SPLIT(BF16, dim)    \
  SHUNT_IN_BLOCKS(dim, SHUNT_SPLIT(Q8_0, dim))
#include "ops/each_head.cuh"
