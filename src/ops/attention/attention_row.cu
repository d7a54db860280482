// A block computes one head of one token, for keys and values of 16 bits, or of Q8_0. Its warps take tiles of positions
// in turn: each thread reads eight elements of a key, and of a value, with one load, and 8, 16 or 32 threads cover a
// position. A warp keeps its own maximum and sums; the block puts them together at the end, in fixed order.
#include "ops/attention/attention_args.h"
#include "ops/attention/cached.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kWarps = kAttentionRowThreads / kWarp;
constexpr std::uint32_t kLoads = 8;     // of keys, per thread and tile
constexpr std::uint32_t kElements = 8;  // of a load
constexpr float kLeast = -3.4028234e38F;

// The running softmax of a thread over its positions: weights are relative to exp(largest).
struct Seen {
  float largest = kLeast;
  float total = 0.0F;
  float sums[kElements]{};

  SHUNT_FUNCTION void shrink_to(float top) {
    const float shrink = kernel_math::exp(largest - top);
    largest = top;
    total *= shrink;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) sums[e] *= shrink;
  }
};

// The block's row, and the thread's place in it.
struct Row {
  const AttentionArgs& args;
  std::uint64_t kv_head;
  std::int32_t sequence;
  std::uint64_t visible;
  std::uint32_t chunk;  // the thread's elements of a head, in eights
  bool has_chunk;
};

// Not inlined, since it is long and few models need it.
__attribute__((noinline)) SHUNT_FUNCTION float capped(float score, float cap) {
  return cap * kernel_math::tanh(score / cap);
}

SHUNT_FUNCTION float score_of(const AttentionArgs& args, float product) {
  const float score = product * args.scale;
  return args.soft_cap > 0.0F ? capped(score, args.soft_cap) : score;
}

// Takes in the positions of a tile, which begins at `tile`; `threads` cover a position.
template <std::uint32_t of, std::uint32_t threads>
SHUNT_FUNCTION void take_in(const CudaCall* call, const Row& row, std::uint64_t tile, const float (&query)[kElements],
                            Seen& seen) {
  const AttentionArgs& args = row.args;
  Eight<of> keys[kLoads];
  Eight<of> values[kLoads];
  bool is_seen[kLoads];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kLoads; ++i) {
    const std::uint64_t at = tile + std::uint64_t{i} * (kWarp / threads) + lane() % kWarp / threads;
    const std::uint64_t slot = at < row.visible ? state_slot(args.table, input_of<std::int32_t>(call, 5), row.sequence,
                                                             static_cast<std::int64_t>(at))
                                                : kNoSlot;
    is_seen[i] = slot != kNoSlot;
    if (!is_seen[i] || !row.has_chunk) continue;
    const std::uint64_t begin =
        (slot * args.kv_heads + row.kv_head) * args.query.extents[3] + std::uint64_t{row.chunk} * kElements;
    keys[i].read(input_of<void>(call, 1), begin);
    values[i].read(input_of<void>(call, 2), begin);
  }
  float scores[kLoads];
  float top = seen.largest;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kLoads; ++i) {
    float product = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) product += query[e] * keys[i][e];
    SHUNT_UNROLL
    for (std::uint32_t mask = 1; mask < threads; mask *= 2) product += from_lane(product, mask);
    scores[i] = is_seen[i] ? score_of(args, product) : kLeast;
    top = kernel_math::max(top, scores[i]);
  }
  seen.shrink_to(top);
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kLoads; ++i) {
    const float weight = is_seen[i] ? kernel_math::exp(scores[i] - top) : 0.0F;
    seen.total += weight;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) seen.sums[e] += weight * values[i][e];
  }
}

// Puts together what threads saw of different positions, in each of them.
template <std::uint32_t threads>
SHUNT_FUNCTION void merge_warp(Seen& seen) {
  SHUNT_UNROLL
  for (std::uint32_t mask = threads; mask < kWarp; mask *= 2) {
    seen.shrink_to(kernel_math::max(seen.largest, from_lane(seen.largest, mask)));
    seen.total += from_lane(seen.total, mask);
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) seen.sums[e] += from_lane(seen.sums[e], mask);
  }
}

template <std::uint32_t of, std::uint32_t threads>
SHUNT_FUNCTION void attend(const CudaCall* call) {
  constexpr std::uint32_t kTile = kLoads * kWarp / threads;
  const auto& args = arguments_of<AttentionArgs>(call);
  const std::uint64_t number = group();
  if (number >= valid_row_count(args.query, parameters_of(call))) return;
  const std::uint32_t heads = args.query.extents[2];
  const std::uint32_t head_dim = args.query.extents[3];
  const auto head = static_cast<std::uint32_t>(number % heads);
  const std::uint64_t token = number / heads;
  const std::int32_t position = input_of<std::int32_t>(call, 3)[token * args.table.position_stride];
  const std::int32_t sequence = input_of<std::int32_t>(call, 4)[token * args.table.sequence_stride];
  const std::uint32_t chunk = lane() % threads;
  const Row row{args,  head / (heads / args.kv_heads), sequence, visible_positions(args.table, sequence, position),
                chunk, chunk * kElements < head_dim};
  float query[kElements]{};
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < kElements; ++e)
    if (row.has_chunk)
      query[e] = load(args.query.dtype, input_of<void>(call, 0),
                      row_offset(args.query, number) + std::uint64_t{chunk * kElements + e} * args.query.strides[3]);

  Seen seen;
  const std::uint32_t warp = lane() / kWarp;
  for (std::uint64_t first = first_position(args, position); first < row.visible;
       first += std::uint64_t{kWarps} * kTile)
    take_in<of, threads>(call, row, first + std::uint64_t{warp} * kTile, query, seen);
  merge_warp<threads>(seen);

  SHUNT_SHARED float tops[kWarps];
  SHUNT_SHARED float totals[kWarps];
  SHUNT_SHARED float sums[kWarps][threads * kElements];
  if (lane() % kWarp < threads) {
    tops[warp] = seen.largest;
    totals[warp] = seen.total;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < kElements; ++e) sums[warp][chunk * kElements + e] = seen.sums[e];
  }
  sync();
  if (lane() >= head_dim) return;
  float largest = args.has_sinks != 0 ? input_of<float>(call, 6)[std::uint64_t{head} * args.sink_stride] : kLeast;
  float total = largest > kLeast ? 1.0F : 0.0F;
  largest = kernel_math::max(largest, kLeast);
  float sum = 0.0F;
  for (std::uint32_t w = 0; w < kWarps; ++w) {
    const float top = kernel_math::max(largest, tops[w]);
    const float shrink = kernel_math::exp(largest - top);
    const float weight = kernel_math::exp(tops[w] - top);
    total = total * shrink + totals[w] * weight;
    sum = sum * shrink + sums[w][lane()] * weight;
    largest = top;
  }
  output_of<float>(call)[number * head_dim + lane()] = total == 0.0F ? 0.0F : sum / total;
}

}  // namespace
}  // namespace shunt

#define SHUNT_ATTENTION_ROW(of, lanes)                                                 \
  SHUNT_BOUNDED_KERNEL(attention_row_##of##_##lanes, shunt::kAttentionRowThreads, 1) { \
    shunt::attend<shunt::dtype::of, lanes>(call);                                      \
  }
SHUNT_ATTENTION_ROW(F16, 8)
SHUNT_ATTENTION_ROW(F16, 16)
SHUNT_ATTENTION_ROW(F16, 32)
SHUNT_ATTENTION_ROW(BF16, 8)
SHUNT_ATTENTION_ROW(BF16, 16)
SHUNT_ATTENTION_ROW(BF16, 32)
SHUNT_ATTENTION_ROW(Q8_0, 8)
SHUNT_ATTENTION_ROW(Q8_0, 16)
SHUNT_ATTENTION_ROW(Q8_0, 32)
