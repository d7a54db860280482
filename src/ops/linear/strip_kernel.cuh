// Up to eight rows of x times a weight in strips (ops/strips.h), on tensor cores and as exact as products of floats.
//
// A block multiplies two streams of strips together: the two halves of its stretch of the weight, or the same rows of
// gate and up. It brings them to shared memory through a ring, a chunk of both for each warp, and begins before the
// kernel ends that writes x. x is there as pairs of halves, x = high + low / 2^11, which are neighbouring columns of
// the product (BF16: three parts). The weights' integers are halves as well, and are scaled after the product. Of each
// row of x, the columns that a warp reads together are divided by a power of two, their size, so that the largest is
// between 1 and 2; the product of a chunk is multiplied by it. Dividing a row by its norm is left to the end.
//
// Item i of a phase, chunk i % chunks of pair i / chunks, is for warp i % 16. A warp adds what it has of a pair to its
// own place of the pair's sums, so nobody waits for others but at the end of a batch of pairs, and all sums have a
// fixed order. A phase is a batch with one segment of x, of which there is one if all of x fits in shared memory.
//
// A kernel stores a product's arguments in the head, calls begin_block(), then StripKernel::run().
#pragma once

#include "ops/linear/linear_args.h"

#include "ops/bulk_copy.cuh"
#include "ops/collective.cuh"
#include "ops/strip.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kThreads = kLinearStripThreads;
constexpr std::uint32_t kWarps = kLinearStripWarps;
constexpr std::uint32_t kPairRows = 16;  // of the weight
constexpr std::uint32_t kStages = kLinearStripMostStages;
constexpr std::uint32_t kStagesBeforeX = 1;  // that are filled before x is read, which would wait behind more

// Returns the offset of row `n` of x or of the result, of at most `x_rows`.
template <std::uint32_t x_rows>
SHUNT_FUNCTION std::uint64_t offset_of(const LinearArgs& args, const std::uint32_t (&strides)[4], std::uint32_t n) {
  if (x_rows == 1) return 0;
  if (args.extents[1] == 1 && args.extents[2] == 1) return std::uint64_t{n} * strides[0];
  return row_offset(args.extents, strides, n);
}

// ---- Data of a block in shared memory, for which its threads need no registers.

// The block's rows of the weight.
struct WeightRowsOfBlock {
  std::uint32_t first[2];      // row of either stream
  std::uint32_t pairs;         // of strips
  std::uint32_t second_pairs;  // pairs, or one less: then the last has one strip

  // Returns the row of the weight, or of the result, that row `row` of a pair is. REQUIRES: has_row().
  SHUNT_FUNCTION std::uint32_t row_of(std::uint32_t pair, std::uint32_t row) const {
    return (row < 8U ? first[0] : first[1]) + pair * 8U + row % 8U;
  }
  SHUNT_FUNCTION bool has_row(std::uint32_t pair, std::uint32_t row) const {
    return pair < (row < 8U ? pairs : second_pairs);
  }
};

// The way of the weight to shared memory.
struct Stream {
  const std::uint8_t* weights[2];  // the first chunks of the block's two streams
  std::uint32_t pairs;
  std::uint32_t second_pairs;
  std::uint32_t chunks;  // of a strip
  std::uint32_t batch;
  std::uint32_t segment;
  std::uint32_t segments;
  std::uint32_t phase_rounds;  // of a phase: items of all warps
  std::uint32_t rounds;        // of all phases
  std::uint32_t stages;
  std::uint32_t ring_at;

  SHUNT_FUNCTION std::uint32_t pairs_of(std::uint32_t batch_number) const {
    const std::uint32_t left_over = pairs - batch_number * batch;
    return left_over < batch ? left_over : batch;
  }
  SHUNT_FUNCTION std::uint32_t chunks_of(std::uint32_t segment_number) const {
    const std::uint32_t left_over = chunks - segment_number * segment;
    return left_over < segment ? left_over : segment;
  }
};

// The kernel's arguments.
struct Arguments {
  CudaCall call;
  LinearArgs args;
  LinearStripPlan plan;
};

// A block's share of a product: the share `number` of `count` equal ones.
struct Share {
  std::uint32_t number;
  std::uint32_t count;
};

// Returns the strips of a share. The first shares have one more than the others.
[[maybe_unused]] SHUNT_FUNCTION WeightRowsOfBlock strip_rows_of(const Share& share, const LinearArgs& args) {
  const std::uint32_t strips = linear_strip_count(args);
  const std::uint32_t each = strips / share.count;
  const std::uint32_t more = strips - each * share.count;
  const std::uint32_t first = share.number * each + (share.number < more ? share.number : more);
  const std::uint32_t count = each + (share.number < more ? 1U : 0U);
  const bool has_up = args.has_up != 0;
  const std::uint32_t pairs = has_up ? count : (count + 1U) / 2U;
  return {{first * 8U, (has_up ? first : first + pairs) * 8U}, pairs, has_up ? count : count / 2U};
}

// The beginning of shared memory.
struct Head {
  Arguments arguments;
  std::uint64_t full[kStages];  // barriers of the ring's stages
  std::uint32_t left[kStages];  // warps that have left a stage
  float squares[kWarps];        // sums of a warp's elements of x, if there is a norm
  float factors[8];             // that divide each row of x by its norm, or 1
  std::uint64_t rows;           // of x that are valid
  WeightRowsOfBlock weight;
  Stream stream;
};
static_assert(sizeof(Head) <= kLinearStripHead);
[[maybe_unused]] SHUNT_FUNCTION Head& head() { return *reinterpret_cast<Head*>(dynamic_shared()); }

// ---- The weight's way to shared memory.

template <std::uint32_t chunk_bytes>
SHUNT_FUNCTION std::uint8_t* stage_at(std::uint32_t ring_at, std::uint32_t slot) {
  return dynamic_shared() + ring_at + std::uint64_t{slot} * 2U * kWarps * chunk_bytes;
}

// Starts to fill a stage with the items of a round. One thread calls it. Items are neighbours in memory as long as they
// are of one pair, and all of them if x has one segment.
template <std::uint32_t chunk_bytes>
SHUNT_FUNCTION void fill(const Stream& stream, std::uint32_t round, std::uint32_t slot) {
  const bool whole = stream.segments == 1;
  const std::uint32_t phase = stream.rounds == stream.phase_rounds ? 0U : round / stream.phase_rounds;
  const std::uint32_t batch = whole ? phase : phase / stream.segments;
  const std::uint32_t segment = phase - batch * stream.segments;
  const std::uint32_t first = (round - phase * stream.phase_rounds) * kWarps;
  const std::uint32_t first_pair = batch * stream.batch;
  const std::uint32_t chunks = stream.chunks_of(segment);
  const std::uint32_t items = stream.pairs_of(batch) * chunks;
  const std::uint32_t second_pairs = stream.second_pairs > first_pair ? stream.second_pairs - first_pair : 0U;
  const std::uint32_t second_items = second_pairs * chunks;
  const std::uint32_t end = items < first + kWarps ? items : first + kWarps;
  std::uint64_t* const full = &head().full[slot];
  for (std::uint32_t item = first; item < end;) {
    const std::uint32_t pair = whole ? 0U : item / chunks;
    const std::uint32_t pair_end = whole ? end : (pair + 1U) * chunks;
    const std::uint32_t next = pair_end < end ? pair_end : end;
    const std::uint32_t second_end = second_items < next ? second_items : next;
    const std::uint64_t from = (std::uint64_t{first_pair + pair} * stream.chunks +
                                std::uint64_t{segment} * stream.segment + (item - pair * chunks)) *
                               chunk_bytes;
    std::uint8_t* const to = stage_at<chunk_bytes>(stream.ring_at, slot) + (item - first) * chunk_bytes;
    copy_bytes(to, stream.weights[0] + from, (next - item) * chunk_bytes, full);
    if (second_end > item)
      copy_bytes(to + std::uint64_t{kWarps} * chunk_bytes, stream.weights[1] + from, (second_end - item) * chunk_bytes,
                 full);
    item = next;
  }
  arrive(full);
  if (round + 1U == stream.rounds) let_next_kernel_begin();
}

// Fills the first time stages `first` to `end` of the ring, each by the first thread of a warp.
template <std::uint32_t chunk_bytes>
SHUNT_FUNCTION void fill_stages(const Stream& stream, std::uint32_t first, std::uint32_t end) {
  const std::uint32_t slot = lane() / kWarp;
  const bool is_used = slot >= first && slot < end && slot < stream.stages && slot < stream.rounds;
  if (lane() % kWarp == 0 && is_used) fill<chunk_bytes>(stream, slot, slot);
}
// Starts the barrier of a stage by the thread that fills it.
[[maybe_unused]] SHUNT_FUNCTION void start_barriers() {
  const std::uint32_t slot = lane() / kWarp;
  if (lane() % kWarp != 0 || slot >= kStages) return;
  start_barrier(&head().full[slot]);
  head().left[slot] = 0;
  publish_barriers();
}

// ---- x in shared memory: for each group of 32 columns, each column of the product and each t of its threads, 16
// bytes.

template <std::uint32_t of, std::uint32_t x_rows>
struct XParts {
  using Weights = Strip<of>;
  static constexpr std::uint32_t kColumns = 2 * x_rows;  // of the product: high and low parts of each row
  static constexpr bool kHasThird = of == dtype::BF16;
  static constexpr std::uint32_t kTiles = (kColumns + 7) / 8;  // of 8 columns
  static constexpr std::uint32_t kAllTiles = kHasThird ? 2 * kTiles : kTiles;
  static constexpr std::uint32_t kSums = Weights::kHasOffsets ? Weights::kColumns / Weights::kGroupColumns : 0;
  static constexpr std::uint32_t kPlace = 64;  // bytes of a group and column
  static constexpr std::uint32_t kChunkGroups = Weights::kColumns / 32;
  std::uint8_t* parts;
  std::uint8_t* thirds;
  std::uint8_t* sums;  // of each chunk and column, the sums of its groups
  float* sizes;        // of each chunk and row

  SHUNT_FUNCTION explicit XParts(const LinearStripPlan& plan)
      : parts(dynamic_shared() + plan.x_at),
        thirds(parts + std::uint64_t{plan.segment} * kChunkGroups * kColumns * kPlace),
        sums(dynamic_shared() + plan.x_sums_at),
        sizes(reinterpret_cast<float*>(dynamic_shared() + plan.x_sizes_at)) {}

  // The columns of every other group are swapped, so that threads that store two groups use different banks.
  SHUNT_FUNCTION static std::uint32_t part_place(std::uint32_t group, std::uint32_t column) {
    return (group * kColumns + (column ^ (group & 1U))) * kPlace;
  }

  // Stores the size of a group's columns, by one thread of each chunk.
  SHUNT_FUNCTION void put_size(std::uint32_t n, std::uint32_t group, float size) const {
    if (group % kChunkGroups == 0 && lane() % 4U == 0) sizes[group / kChunkGroups * x_rows + n] = size;
  }

  // Stores a thread's columns of a group: four of an even step and four of an odd one. REQUIRES: all threads of the
  // warp call it; it stores where `stored`.
  SHUNT_FUNCTION void put(std::uint32_t n, std::uint32_t group, const float (&values)[8], bool stored) const {
    const std::uint32_t t = lane() % 4U;
    FourWords high;
    FourWords low;
    FourWords third;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      constexpr float kOdd = 1.0F / static_cast<float>(Weights::kOddFactor);
      const float first = values[std::uint64_t{2} * i] * (i < 2 ? 1.0F : kOdd);
      const float second = values[std::uint64_t{2} * i + 1U] * (i < 2 ? 1.0F : kOdd);
      if constexpr (kHasThird) {
        high.words[i] = narrow_pair_bf16(first, second);
        const float first_rest = first - widen_bf16(high.words[i] & 0xFFFFU);
        const float second_rest = second - widen_bf16(high.words[i] >> 16U);
        low.words[i] = narrow_pair_bf16(first_rest, second_rest);
        third.words[i] = narrow_pair_bf16(first_rest - widen_bf16(low.words[i] & 0xFFFFU),
                                          second_rest - widen_bf16(low.words[i] >> 16U));
      } else {
        high.words[i] = narrow_pair(first, second);
        low.words[i] =
            narrow_pair((first - low_half(high.words[i])) * 2048.0F, (second - high_half(high.words[i])) * 2048.0F);
      }
    }
    if (stored) {
      *reinterpret_cast<FourWords*>(parts + part_place(group, 2U * n) + std::uint64_t{t} * 16U) = high;
      *reinterpret_cast<FourWords*>(parts + part_place(group, 2U * n + 1U) + std::uint64_t{t} * 16U) = low;
      if constexpr (kHasThird)
        *reinterpret_cast<FourWords*>(thirds + std::uint64_t{group * x_rows + n} * kPlace + std::uint64_t{t} * 16U) =
            third;
    }
    if constexpr (kSums != 0) put_sums(n, group, values, stored && t == 0);
  }
  SHUNT_FUNCTION void put_sums(std::uint32_t n, std::uint32_t group, const float (&values)[8], bool stored) const {
    float even = (values[0] + values[1]) + (values[2] + values[3]);
    float odd = (values[4] + values[5]) + (values[6] + values[7]);
    if constexpr (Weights::kGroupColumns == 32) even += odd;
    SHUNT_UNROLL
    for (std::uint32_t mask = 1; mask < 4; mask *= 2) {
      even += from_lane(even, mask);
      if constexpr (Weights::kGroupColumns == 16) odd += from_lane(odd, mask);
    }
    if (!stored) return;
    const std::uint32_t column = group / kChunkGroups * kColumns + 2U * n;
    const std::uint32_t high = narrow_pair(even, odd);
    const std::uint32_t low = narrow_pair((even - low_half(high)) * 2048.0F, (odd - high_half(high)) * 2048.0F);
    if constexpr (Weights::kGroupColumns == 16) {
      auto* const to = reinterpret_cast<std::uint32_t*>(sums) + column * kSums / 2U + group % kChunkGroups;
      to[0] = high;
      to[kSums / 2U] = low;
    } else {
      auto* const to = reinterpret_cast<std::uint16_t*>(sums) + std::uint64_t{column} * kSums + group % kChunkGroups;
      to[0] = static_cast<std::uint16_t>(high);
      to[kSums] = static_cast<std::uint16_t>(low);
    }
  }
};

// The part of x in a thread's registers: four pieces of eight columns, or two and their weights in the norm.
struct HeldX {
  static constexpr std::uint32_t kFours = 8;
  FourFloats fours[kFours];
};

// How threads read x: those of a row take groups of 32 columns in turns, four threads each.
template <std::uint32_t x_rows>
struct XReader {
  static constexpr std::uint32_t kRowThreads = kThreads / x_rows;
  static constexpr std::uint32_t kRowGroups = kRowThreads / 4;
  const float* x;
  const float* norm;
  bool x_in_sixteens;
  bool norm_in_sixteens;
  bool has_row;

  // Reads rows whether they are valid or not: they concern their own columns of the product only.
  SHUNT_FUNCTION XReader(const CudaCall* call, const LinearArgs& args) {
    x = input_of<float>(call, 0) + offset_of<x_rows>(args, args.x_strides, row());
    norm = input_of<float>(call, 2);
    x_in_sixteens = is_in_sixteens(x);
    norm_in_sixteens = is_in_sixteens(norm);
    has_row = x_rows == 1 || row() < linear_capacity(args);
  }
  SHUNT_FUNCTION static std::uint32_t row() { return lane() / kRowThreads; }
  // Returns whether any thread has a group before `end` in a turn, and the thread's group in it.
  SHUNT_FUNCTION static bool has_turn(std::uint32_t first, std::uint32_t turn, std::uint32_t end) {
    return first + turn * kRowGroups < end;
  }
  SHUNT_FUNCTION static std::uint32_t group(std::uint32_t first, std::uint32_t turn) {
    return first + lane() % kRowThreads / 4U + turn * kRowGroups;
  }
  SHUNT_FUNCTION static std::uint32_t column(std::uint32_t group, std::uint32_t half) {
    return group * 32U + half * 16U + lane() % 4U * 4U;
  }
};

// Returns n for 2^n <= size < 2^(n + 1), but not so large or small that 2^n or 2^-n would be no normal number. `bits`
// are those of a positive size.
[[maybe_unused]] SHUNT_FUNCTION std::int32_t exponent_of(std::uint32_t bits) {
  const std::int32_t exponent = static_cast<std::int32_t>(bits >> 23U) - 127;
  return exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
}

// Brings x to shared memory.
template <std::uint32_t of, std::uint32_t x_rows, bool has_norm>
struct XPreparation {
  using Reader = XReader<x_rows>;
  static constexpr std::uint32_t kPieces = HeldX::kFours / (has_norm ? 4 : 2);
  static constexpr std::uint32_t kStep = kPieces * Reader::kRowGroups;  // groups that the threads of a row read at once

  // Reads fours of the thread's groups before `end`; what it has no group for is zero.
  template <class Read>
  SHUNT_FUNCTION static void read(std::uint32_t first, std::uint32_t end, FourFloats (&held)[HeldX::kFours],
                                  std::uint32_t place, Read read_at) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kPieces * 2; ++i) {
      const std::uint32_t group = Reader::group(first, i / 2U);
      held[place + i] = {{0.0F, 0.0F, 0.0F, 0.0F}};
      if (group < end) held[place + i] = read_at(Reader::column(group, i % 2U));
    }
  }
  SHUNT_FUNCTION static void read_norm(const Reader& reader, std::uint32_t first, std::uint32_t groups, HeldX& held) {
    if constexpr (has_norm) {
      if (reader.norm_in_sixteens) {
        read(first, groups, held.fours, kPieces * 2,
             [&](std::uint32_t at) { return read_four(reader.norm + at, true); });
      } else {
        read(first, groups, held.fours, kPieces * 2,
             [&](std::uint32_t at) { return read_four(reader.norm + at, false); });
      }
    }
  }
  SHUNT_FUNCTION static void read_x(const Reader& reader, std::uint32_t first, std::uint32_t groups, HeldX& held) {
    const std::uint32_t end = reader.has_row ? groups : 0U;
    if (reader.x_in_sixteens) {
      read(first, end, held.fours, 0, [&](std::uint32_t at) { return fresh_four(reader.x + at, true); });
    } else {
      read(first, end, held.fours, 0, [&](std::uint32_t at) { return fresh_four(reader.x + at, false); });
    }
  }
  // Stores what the thread holds of groups from `first` on, of those before `end`, in a segment that begins with group
  // `from`. Returns the sum of the squares of x.
  SHUNT_FUNCTION static float put(const XParts<of, x_rows>& parts, const Reader& reader, const HeldX& held,
                                  std::uint32_t first, std::uint32_t from, std::uint32_t end) {
    float squares = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      if (!Reader::has_turn(first, i, end)) break;
      float values[8];
      std::uint32_t largest = 0;
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 8; ++e) {
        values[e] = held.fours[2U * i + e / 4U].values[e % 4U];
        if constexpr (has_norm) {
          squares += values[e] * values[e];
          values[e] *= held.fours[kPieces * 2 + 2U * i + e / 4U].values[e % 4U];
        }
        const std::uint32_t bits = kernel_math::bits_of(values[e]) & 0x7FFFFFFFU;
        largest = largest < bits ? bits : largest;
      }
      const std::int32_t exponent = exponent_of(largest_of_warp(largest));
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 8; ++e) values[e] *= kernel_math::power_of_two(-exponent);
      const std::uint32_t group = Reader::group(first, i);
      const bool exists = group < end;
      if (exists) parts.put_size(Reader::row(), group - from, kernel_math::power_of_two(exponent));
      parts.put(Reader::row(), group - from, values, reader.has_row && exists);
    }
    return squares;
  }
  // Stores a segment of groups, of which `held` has what the thread reads first. If `first_time`, the sums of squares
  // are added up as well.
  SHUNT_FUNCTION static void put_segment(const XParts<of, x_rows>& parts, const Reader& reader, HeldX& held,
                                         std::uint32_t from, std::uint32_t end, bool first_time) {
    float squares = put(parts, reader, held, from, from, end);
    for (std::uint32_t first = from + kStep; first < end; first += kStep) {
      read_norm(reader, first, end, held);
      read_x(reader, first, end, held);
      squares += put(parts, reader, held, first, from, end);
    }
    if (!has_norm || !first_time) return;
    SHUNT_UNROLL
    for (std::uint32_t mask = kWarp / 2; mask != 0; mask /= 2) squares += from_lane(squares, mask);
    if (lane() % kWarp == 0)
      head().squares[lane() / kWarp] = from == 0 ? squares : head().squares[lane() / kWarp] + squares;
  }
};

// Stores the factors that divide rows of x by their norms, by the last threads: the first warps also fill stages.
template <std::uint32_t x_rows>
SHUNT_FUNCTION void put_norm_factors(const LinearArgs& args) {
  if (lane() < kThreads - x_rows) return;
  const std::uint32_t n = kThreads - 1U - lane();
  constexpr std::uint32_t kRowWarps = kWarps / x_rows;
  float sum = 0.0F;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kRowWarps; ++i) sum += head().squares[n * kRowWarps + i];
  head().factors[n] =
      args.has_norm == 0 ? 1.0F : 1.0F / kernel_math::sqrt(sum / static_cast<float>(args.k) + args.epsilon);
}

// ---- Products.

// The places of a thread's columns of x.
template <std::uint32_t of, std::uint32_t x_rows>
struct XColumns {
  using Parts = XParts<of, x_rows>;
  using Weights = Strip<of>;
  const std::uint8_t* even;  // in even groups
  const std::uint8_t* odd;
  const std::uint8_t* thirds;
  const std::uint8_t* sums;
  const float* sizes;

  SHUNT_FUNCTION explicit XColumns(const Parts& parts) {
    const std::uint32_t t = lane() % 4U;
    const std::uint32_t column = lane() % kWarp / 4U % Parts::kColumns;  // columns that are not used repeat others
    even = parts.parts + column * Parts::kPlace + t * 16U;
    odd = parts.parts + (column ^ 1U) * Parts::kPlace + t * 16U;
    thirds = parts.thirds + column / 2U * Parts::kPlace + t * 16U;
    sums = parts.sums;
    sizes = parts.sizes + t % x_rows;
    if constexpr (Parts::kSums != 0) sums += column * (Parts::kSums * 2U) + t % (Parts::kSums / 2U) * 4U;
  }
  // Returns what tile `tile` multiplies of group `group`: the operands of an even and of an odd step.
  SHUNT_FUNCTION const FourWords& parts_of(std::uint32_t chunk, std::uint32_t group, std::uint32_t tile) const {
    const std::uint32_t at = chunk * (Weights::kColumns / 32U) + group;
    if (Parts::kHasThird && tile >= Parts::kTiles)
      return *reinterpret_cast<const FourWords*>(thirds + (at * x_rows + (tile - Parts::kTiles) * 4U) * Parts::kPlace);
    const std::uint8_t* const base = group % 2U == 0 ? even : odd;
    return *reinterpret_cast<const FourWords*>(base + (at * Parts::kColumns + tile * 8U) * Parts::kPlace);
  }
  // Returns the size of the row of x whose parts are the thread's columns of the product.
  SHUNT_FUNCTION float size_of(std::uint32_t chunk, std::uint32_t tile) const {
    return sizes[chunk * x_rows + tile % Parts::kTiles * (x_rows == 8 ? 4U : 0U)];
  }
  SHUNT_FUNCTION std::uint32_t sums_of(std::uint32_t chunk, std::uint32_t tile, std::uint32_t word) const {
    return *reinterpret_cast<const std::uint32_t*>(sums + (chunk * Parts::kColumns + tile * 8U) * (Parts::kSums * 2U) +
                                                   word * 4U);
  }
};

template <std::uint32_t of>
SHUNT_FUNCTION Product multiply_step(const StepHalves& first, const StepHalves& second, std::uint32_t low,
                                     std::uint32_t high, const Product& sums) {
  const std::uint32_t a[4] = {first.low, second.low, first.high, second.high};
  if constexpr (of == dtype::BF16) {
    return multiply_bf16(a, low, high, sums);
  } else {
    return multiply_halves(a, low, high, sums);
  }
}

// Adds to the sums of the rows of the first strip, and of the second.
[[maybe_unused]] SHUNT_FUNCTION void add_scaled(Product& sums, const Product& product, float first, float second) {
  sums.sums[0] += first * product.sums[0];
  sums.sums[1] += first * product.sums[1];
  sums.sums[2] += second * product.sums[2];
  sums.sums[3] += second * product.sums[3];
}

// Adds the products of a group of 32 columns.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void multiply_group(const Strip<of>& first, const Strip<of>& second, const XColumns<of, x_rows>& x,
                                   std::uint32_t chunk, std::uint32_t group, Product (&sums)[tiles]) {
  constexpr std::uint32_t kScaled = Strip<of>::kGroupColumns;
  StepHalves a[2];
  StepHalves b[2];
  SHUNT_UNROLL
  for (std::uint32_t s = 0; s < 2; ++s) {
    a[s] = first.step(2U * group + s);
    b[s] = second.step(2U * group + s);
  }
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    const FourWords parts = x.parts_of(chunk, group, tile);
    Product product = kScaled == 0 ? sums[tile] : Product{};
    SHUNT_UNROLL
    for (std::uint32_t s = 0; s < 2; ++s) {
      product = multiply_step<of>(a[s], b[s], parts.words[std::uint64_t{2} * s], parts.words[std::uint64_t{2} * s + 1U],
                                  product);
      if constexpr (kScaled == 16) {
        add_scaled(sums[tile], product, first.scale(2U * group + s), second.scale(2U * group + s));
        product = Product{};
      }
    }
    if constexpr (kScaled == 0) sums[tile] = product;
    if constexpr (kScaled == 32) add_scaled(sums[tile], product, first.scale(group), second.scale(group));
  }
}

// Adds the products of the minima with sums of x.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void multiply_minima(const Strip<of>& first, const Strip<of>& second, const XColumns<of, x_rows>& x,
                                    std::uint32_t chunk, Product (&sums)[tiles]) {
  const OffsetHalves a = first.minima(lane() % 4U);
  const OffsetHalves b = second.minima(lane() % 4U);
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    Product product;
    if constexpr (XParts<of, x_rows>::kSums == 16) {
      const std::uint32_t both[4] = {a.low, b.low, a.high, b.high};
      product = multiply_halves(both, x.sums_of(chunk, tile, 0), x.sums_of(chunk, tile, 4), Product{});
    } else {
      product = multiply_eight_halves(a.low, b.low, x.sums_of(chunk, tile, 0));
    }
    const float size = x.size_of(chunk, tile);
    add_scaled(sums[tile], product, first.offset_factor() * size, second.offset_factor() * size);
  }
}

// Adds the products of an item: a chunk of both streams with chunk `chunk` of x.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void multiply_item(const std::uint8_t* first_chunk, const std::uint8_t* second_chunk,
                                  const XColumns<of, x_rows>& x, std::uint32_t chunk, Product (&sums)[tiles]) {
  using Weights = Strip<of>;
  Weights first;
  Weights second;
  first.read(first_chunk, lane() % kWarp);
  second.read(second_chunk, lane() % kWarp);
  if constexpr (Weights::kHasOffsets) multiply_minima(first, second, x, chunk, sums);
  Product inner[tiles]{};
  SHUNT_UNROLL
  for (std::uint32_t group = 0; group < Weights::kColumns / 32U; ++group)
    multiply_group(first, second, x, chunk, group, inner);
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    const float size = x.size_of(chunk, tile);
    if constexpr (Weights::kHasOuter)
      add_scaled(sums[tile], inner[tile], first.outer() * size, second.outer() * size);
    else
      add_scaled(sums[tile], inner[tile], size, size);
  }
}

// The place of a warp's sum in those of a buffer.
template <std::uint32_t x_rows>
SHUNT_FUNCTION std::uint32_t sum_place(std::uint32_t pair, std::uint32_t n, std::uint32_t row) {
  return ((pair * x_rows + n) * kPairRows + row) * kWarps;
}

// Adds what the warp has of a pair to its place, and clears it. Thread 4 g + t has rows g and g + 8 of the pair; of the
// product's columns it has the parts of one row of x in each tile.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void add_to_pair(float* sums, std::uint32_t pair, Product (&products)[tiles]) {
  using Parts = XParts<of, x_rows>;
  constexpr float kLow = Parts::kHasThird ? 1.0F : 0x1p-11F;
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < Parts::kTiles; ++tile) {
    const std::uint32_t n = tile * 4U + lane() % 4U;
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      float value = products[tile].sums[2U * half + 1U] * kLow;
      if constexpr (Parts::kHasThird) value += products[Parts::kTiles + tile].sums[2U * half];
      value += products[tile].sums[2U * half];
      if (n < x_rows) sums[sum_place<x_rows>(pair, n, half * 8U + lane() % kWarp / 4U) + lane() / kWarp] += value;
    }
  }
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) products[tile] = Product{};
}

// ---- The products of a phase.

// A warp's place in the ring.
struct Place {
  std::uint32_t round = 0;
  std::uint32_t slot = 0;
  std::uint32_t parity = 0;
};

// Leaves the stage that the warp has read. The last warp fills it again. A Ring has the numbers of its rounds and of
// its stages, and fill(round, slot).
template <class Ring>
SHUNT_FUNCTION void leave(Place& place, const Ring& ring) {
  sync_warp();
  if (lane() % kWarp == 0 && place.round + ring.stages < ring.rounds &&
      count_up(&head().left[place.slot]) == kWarps - 1) {
    head().left[place.slot] = 0;
    ring.fill(place.round + ring.stages, place.slot);
  }
  ++place.round;
  if (++place.slot == ring.stages) {
    place.slot = 0;
    place.parity ^= 1U;
  }
}

// Multiplies the items of a phase of `phase_rounds` rounds: `chunks` chunks of `pairs` pairs.
template <std::uint32_t of, std::uint32_t x_rows, class Ring>
SHUNT_FUNCTION void multiply_phase(Place& place, const Ring& ring, const XColumns<of, x_rows>& x,
                                   std::uint32_t phase_rounds, std::uint32_t pairs, std::uint32_t chunks, float* sums) {
  constexpr std::uint32_t kBytes = Strip<of>::kBytes;
  constexpr std::uint64_t kStageBytes = std::uint64_t{2} * kWarps * kBytes;
  const std::uint32_t warp = lane() / kWarp;
  const std::uint8_t* const stages = stage_at<kBytes>(ring.at, 0) + warp * kBytes;
  Product products[XParts<of, x_rows>::kAllTiles]{};
  std::uint32_t chunk = warp;
  std::uint32_t pair = 0;
  for (; chunk >= chunks; chunk -= chunks) ++pair;
  for (std::uint32_t left = phase_rounds; left != 0; --left) {
    wait(&head().full[place.slot], place.parity);
    const std::uint8_t* const at = stages + place.slot * kStageBytes;
    if (pair < pairs) multiply_item(at, at + std::uint64_t{kWarps} * kBytes, x, chunk, products);
    leave(place, ring);
    const std::uint32_t done = pair;
    for (chunk += kWarps; chunk >= chunks; chunk -= chunks) ++pair;
    if (pair != done && done < pairs) add_to_pair<of, x_rows>(sums, done, products);
  }
}

// ---- The end of a batch.

// Returns the sum of a row over the warps, and clears it if there is another batch. Neighbours begin with different
// fours, which are in different banks; the sum has the same terms in each order.
template <std::uint32_t x_rows>
SHUNT_FUNCTION float take_sum(float* sums, std::uint32_t pair, std::uint32_t n, std::uint32_t row, bool clears) {
  static_assert(kWarps == 16);
  auto* const fours = reinterpret_cast<FourFloats*>(sums + sum_place<x_rows>(pair, n, row));
  float parts[4];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t place = i ^ (lane() / 2U % 4U);
    const FourFloats four = fours[place];
    if (clears) fours[place] = {{0.0F, 0.0F, 0.0F, 0.0F}};
    parts[i] = (four.values[0] + four.values[1]) + (four.values[2] + four.values[3]);
  }
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// An output of a batch.
template <std::uint32_t x_rows>
struct Output {
  std::uint32_t pair;
  std::uint32_t n;
  std::uint32_t row;  // of the pair

  SHUNT_FUNCTION Output(const LinearArgs& args, std::uint32_t index) {
    static_assert(kPairRows == 16);
    const std::uint32_t bits = args.has_up != 0 ? 3U : 4U;  // of a row of a pair
    row = index & ((1U << bits) - 1U);
    n = (index >> bits) % x_rows;
    pair = (index >> bits) / x_rows;
  }
  SHUNT_FUNCTION static std::uint32_t count(const LinearArgs& args, std::uint32_t pairs) {
    return pairs * x_rows * (args.has_up != 0 ? 8U : kPairRows);
  }
};

// Returns the residual of an output, if its row of x exists.
template <std::uint32_t x_rows>
SHUNT_FUNCTION float residual_of(const CudaCall& call, const LinearArgs& args, const WeightRowsOfBlock& weight,
                                 const Output<x_rows>& output, std::uint32_t first_pair) {
  const std::uint32_t pair = first_pair + output.pair;
  const bool exists = (x_rows == 1 || output.n < linear_capacity(args)) && weight.has_row(pair, output.row);
  if (args.has_residual == 0 || !exists) return 0.0F;
  return fresh_float(input_of<float>(&call, 2) + offset_of<x_rows>(args, args.residual_strides, output.n) +
                     weight.row_of(pair, output.row));
}

// Stores the outputs of a batch of `pairs` pairs. `early` is the residual of the thread's first one in the first batch.
template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void finish(const CudaCall& call, const LinearArgs& args, const WeightRowsOfBlock& weight, float* sums,
                           std::uint32_t first_pair, std::uint32_t pairs, bool clears, float early) {
  const bool has_up = args.has_up != 0;
  for (std::uint32_t i = lane(); i < Output<x_rows>::count(args, pairs); i += kThreads) {
    const Output<x_rows> output(args, i);
    const float factor = head().factors[output.n] / Strip<of>::kOne;
    const auto total = [&](std::uint32_t row) {
      return take_sum<x_rows>(sums, output.pair, output.n, row, clears) * factor;
    };
    float sum = total(output.row);
    if (has_up) sum = sum / (1.0F + kernel_math::exp(-sum)) * total(output.row + 8U);
    if (output.n >= head().rows || !weight.has_row(first_pair + output.pair, output.row)) continue;
    sum += first_pair == 0 && i == lane() ? early : residual_of(call, args, weight, output, first_pair);
    output_of<float>(&call)[offset_of<x_rows>(args, args.out_strides, output.n) +
                            weight.row_of(first_pair + output.pair, output.row)] = sum;
  }
}

// ---- The kernel.

// Makes the ring's barriers, and shows them and the arguments in the head to all threads.
[[maybe_unused]] SHUNT_FUNCTION void begin_block() {
  start_barriers();
  sync();
}

template <std::uint32_t of, std::uint32_t x_rows>
struct StripKernel {
  using Parts = XParts<of, x_rows>;
  using WithNorm = XPreparation<of, x_rows, true>;
  using Plain = XPreparation<of, x_rows, false>;
  static constexpr std::uint32_t kChunkBytes = Strip<of>::kBytes;
  static constexpr std::uint32_t kChunkGroups = Strip<of>::kColumns / 32;
  static constexpr std::uint32_t kSumFloats = linear_strip_sum_bytes(x_rows) / 4;  // of a pair

  SHUNT_FUNCTION static float* all_sums() { return reinterpret_cast<float*>(dynamic_shared() + kLinearStripHead); }

  SHUNT_FUNCTION static Stream stream_of(const Arguments& from, const WeightRowsOfBlock& weight) {
    const LinearStripPlan& plan = from.plan;
    const std::uint64_t row_bytes = std::uint64_t{plan.chunks} * (kChunkBytes / 8U);
    const auto* const first = input_of<std::uint8_t>(&from.call, 1);
    const auto* const second = from.args.has_up != 0 ? input_of<std::uint8_t>(&from.call, 3) : first;
    const bool one_batch = weight.pairs <= plan.batch;
    const std::uint32_t batch = one_batch ? weight.pairs : plan.batch;
    const std::uint32_t phase_rounds = (batch * plan.segment + kWarps - 1U) / kWarps;
    const std::uint32_t batches = one_batch ? 1U : (weight.pairs + batch - 1U) / batch;
    return {.weights = {first + weight.first[0] * row_bytes, second + weight.first[1] * row_bytes},
            .pairs = weight.pairs,
            .second_pairs = weight.second_pairs,
            .chunks = plan.chunks,
            .batch = batch,
            .segment = plan.segment,
            .segments = plan.segments,
            .phase_rounds = phase_rounds,
            .rounds = batches * plan.segments * phase_rounds,
            .stages = plan.stages,
            .ring_at = plan.ring_at};
  }

  SHUNT_FUNCTION static void clear_sums(std::uint32_t batch) {
    const std::uint32_t fours = batch * (2 * kSumFloats / 4);
    for (std::uint32_t i = lane(); i < fours; i += kThreads)
      reinterpret_cast<FourFloats*>(all_sums())[i] = {{0.0F, 0.0F, 0.0F, 0.0F}};
  }

  // Starts the ring, waits for x, and stores its first segment. Returns the residual of the thread's first output.
  SHUNT_FUNCTION static float begin(const Share& share) {
    const Arguments& from = head().arguments;
    const WeightRowsOfBlock weight = strip_rows_of(share, from.args);
    const Stream stream = stream_of(from, weight);
    fill_stages<kChunkBytes>(stream, 0, kStagesBeforeX);
    const XReader<x_rows> reader(&from.call, from.args);
    const bool has_norm = from.args.has_norm != 0;
    const std::uint32_t end = from.plan.segment * kChunkGroups;
    HeldX held;
    if (has_norm) {
      wait_to_read(&from.call, 1U << 2U);
      WithNorm::read_norm(reader, 0, end, held);
    }
    if (lane() == 0) {
      head().weight = weight;
      head().stream = stream;
    }
    clear_sums(from.plan.batch);
    const Parameters parameters = parameters_of(&from.call);

    wait_for_earlier_kernels();
    if (has_norm) {
      WithNorm::read_x(reader, 0, end, held);
    } else {
      Plain::read_x(reader, 0, end, held);
    }
    float residual = 0.0F;
    if (lane() < Output<x_rows>::count(from.args, stream.batch))
      residual = residual_of(from.call, from.args, weight, Output<x_rows>(from.args, lane()), 0);
    fill_stages<kChunkBytes>(stream, kStagesBeforeX, kStages);
    if (has_norm) {
      WithNorm::put_segment(Parts(from.plan), reader, held, 0, end, true);
    } else {
      Plain::put_segment(Parts(from.plan), reader, held, 0, end, true);
    }
    if (lane() == 0) head().rows = linear_rows(from.args, parameters);
    return residual;
  }

  // Reads a segment of x and stores it.
  SHUNT_FUNCTION static void put_segment(std::uint32_t segment, bool first_time) {
    const auto& [call, args, plan] = head().arguments;
    const XReader<x_rows> reader(&call, args);
    const Parts parts(plan);
    const std::uint32_t from = segment * plan.segment * kChunkGroups;
    const std::uint32_t end = from + head().stream.chunks_of(segment) * kChunkGroups;
    HeldX held;
    if (args.has_norm != 0) {
      WithNorm::read_norm(reader, from, end, held);
      WithNorm::read_x(reader, from, end, held);
      WithNorm::put_segment(parts, reader, held, from, end, first_time);
    } else {
      Plain::read_x(reader, from, end, held);
      Plain::put_segment(parts, reader, held, from, end, first_time);
    }
  }

  // The ring, as the head describes it.
  struct Ring {
    std::uint32_t rounds = head().stream.rounds;
    std::uint32_t stages = head().stream.stages;
    std::uint32_t at = head().stream.ring_at;
    SHUNT_FUNCTION void fill(std::uint32_t round, std::uint32_t slot) const {
      shunt::fill<kChunkBytes>(head().stream, round, slot);
    }
  };

  // Does the block's share of the product whose arguments are in the head. REQUIRES: begin_block() was called.
  SHUNT_FUNCTION static void run(const Share& share) {
    const float residual = begin(share);
    bool has_segment = true;
    sync();
    const Stream& stream = head().stream;
    const Ring ring;
    const XColumns<of, x_rows> x{Parts(head().arguments.plan)};
    Place place;
    for (std::uint32_t first_pair = 0, batch = 0; first_pair < stream.pairs; first_pair += stream.batch, ++batch) {
      const std::uint32_t pairs = stream.pairs_of(batch);
      float* const sums = all_sums() + std::uint64_t{batch % 2U} * head().arguments.plan.batch * kSumFloats;
      for (std::uint32_t segment = 0; segment < stream.segments; ++segment) {
        if (!has_segment) {
          sync();
          put_segment(segment, batch == 0);
          sync();
        }
        has_segment = stream.segments == 1;
        if (batch == 0 && segment + 1 == stream.segments) put_norm_factors<x_rows>(head().arguments.args);
        multiply_phase(place, ring, x, stream.phase_rounds, pairs, stream.chunks_of(segment), sums);
      }
      sync();
      const auto& [call, args, plan] = head().arguments;
      finish<of, x_rows>(call, args, head().weight, sums, first_pair, pairs, stream.pairs > stream.batch, residual);
    }
  }
};

}  // namespace
}  // namespace shunt
