// Few rows of x in shared memory, for a weight in strips: for each group of 32 columns, each column of the product and
// each t of its threads, 16 bytes.
#pragma once

#include "ops/linear/strip_block.cuh"

namespace shunt {
namespace {

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

}  // namespace
}  // namespace shunt
