// linear in bytes, for many token rows: quants of the weight, and x rounded to integers of 8 bits with a scale for each
// 32 of them. Included by row_products_simd.cpp, once per instruction set.
//
// Phase 1 rounds x. In phase 2 each thread unpacks a strip of weight rows, 256 elements of k at a time, with rows side
// by side in a vector, and multiplies it by all token rows. Products of bytes are summed exactly; each group's sum
// becomes F32.
#if defined(SHUNT_OPS_BYTE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BYTE_TILE_INL_H_
#undef SHUNT_OPS_BYTE_TILE_INL_H_
#else
#define SHUNT_OPS_BYTE_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/kernel.h"
#include "ops/linear/byte_blocking.h"
#include "ops/linear/byte_dot-inl.h"
#include "ops/linear/byte_matrix-inl.h"
#include "ops/linear/linear.h"
#include "ops/quantize/block_bytes-inl.h"

#if SHUNT_HAS_BYTE_DOT
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// ---- x

// Rounds up to 256 elements of a token row. An element that is not finite makes all products of the row NaN. A group
// whose scale could not be inverted in F32 counts as zeros.
static HWY_NOINLINE void round_block(const float* x, std::size_t elements, const ByteGroups& groups, const RoundedX& to,
                                     std::size_t row, std::size_t block) {
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const hn::Rebind<std::int8_t, BlockTag> d8;
  constexpr float kLeast = 0x1p-100F;
  std::int8_t* const bytes = to.block(block, row);
  for (std::size_t i = 0; i < elements; i += kByteXGroup) {
    auto most = hn::Zero(d);
    auto zero = hn::Zero(d);
    for (std::size_t j = 0; j < kByteXGroup; j += kBlockLanes) {
      const auto v = hn::LoadU(d, x + i + j);
      most = hn::Max(most, hn::Abs(v));
      zero = hn::MulAdd(v, hn::Zero(d), zero);
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
    const bool is_zero = largest < kLeast;
    const float scale = (is_zero ? 0 : largest / 127) + hn::GetLane(hn::SumOfLanes(d, zero));
    to.scale(block * (kByteElements / kByteXGroup) + i / kByteXGroup, row) = scale;
    const auto inverse = hn::Set(d, is_zero ? 0 : 127 / largest);
    for (std::size_t g = i; g < i + kByteXGroup; g += groups.elements) {
      auto sum = hn::Zero(di);
      for (std::size_t j = 0; j < groups.elements; j += kBlockLanes) {
        const auto nearest = hn::NearestInt(hn::Mul(hn::LoadU(d, x + g + j), inverse));
        const auto q = hn::Max(hn::Min(nearest, hn::Set(di, 127)), hn::Set(di, -127));
        sum = hn::Add(sum, q);
        hn::StoreU(hn::DemoteTo(d8, q), d8, bytes + g + j);
      }
      const std::int32_t total = hn::GetLane(hn::SumOfLanes(di, sum));
      to.sum(block * (kByteElements / groups.elements) + g / groups.elements, row) =
          groups.centre == 0 ? GroupSum{.times_scale = scale * static_cast<float>(total)}
                             : GroupSum{.below_centre = -groups.centre * total};
    }
  }
}

// ---- The weight

using RowBytes = hn::Vec<hn::Repartition<std::uint32_t, BlockTag>>;
// Returns a vector whose blocks of 16 bytes come from every fourth row, from byte `k` on.
template <std::size_t kRowBytes>
HWY_INLINE RowBytes every_fourth_row(const std::uint8_t (*bytes)[kRowBytes], std::size_t k) {
  const hn::FixedTag<std::uint32_t, 4> d4;
  const auto at = [&](std::size_t row) {
    return hn::LoadU(d4, reinterpret_cast<const std::uint32_t*>(bytes[row] + k));
  };
#if HWY_TARGET == HWY_AVX3
  const hn::FixedTag<std::uint32_t, 8> d8;
  const hn::FixedTag<std::uint32_t, 16> d16;
  return hn::Combine(d16, hn::Combine(d8, at(12), at(8)), hn::Combine(d8, at(4), at(0)));
#elif HWY_TARGET == HWY_AVX2
  const hn::FixedTag<std::uint32_t, 8> d8;
  return hn::Combine(d8, at(4), at(0));
#else
  return at(0);
#endif
}

// Puts `bytes` of kBlockLanes unpacked rows side by side, four of each row together, as columns `first` and following
// of the strip.
template <std::size_t kRowBytes, class Strip>
HWY_INLINE void put_side_by_side(const std::uint8_t (*rows)[kRowBytes], std::size_t bytes, std::size_t first,
                                 Strip& strip) {
  const hn::Repartition<std::uint32_t, BlockTag> d;
  const hn::Repartition<std::uint64_t, BlockTag> wide;
  const hn::Repartition<std::uint8_t, BlockTag> d8;
  for (std::size_t k = 0; k < bytes; k += 16) {
    RowBytes r[4];
    for (std::size_t j = 0; j < 4; ++j) r[j] = every_fourth_row(rows + j, k);
    const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, r[0], r[1]));
    const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, r[0], r[1]));
    const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(d, r[2], r[3]));
    const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(d, r[2], r[3]));
    const auto store = [&](std::size_t word, hn::Vec<decltype(wide)> v) {
      strip.put(k / 4 + word, first, hn::BitCast(d8, v));
    };
    store(0, hn::InterleaveLower(wide, ab_low, cd_low));
    store(1, hn::InterleaveUpper(wide, ab_low, cd_low));
    store(2, hn::InterleaveLower(wide, ab_high, cd_high));
    store(3, hn::InterleaveUpper(wide, ab_high, cd_high));
  }
}

// Unpacks `elements` of `count` rows, kByteStripRows at most, at `weight`. Columns of rows that are not there repeat
// the last one.
template <class Bytes, class Strip>
HWY_NOINLINE void load_strip(const std::byte* weight, std::size_t row_bytes, std::size_t block_bytes, std::size_t count,
                             std::size_t elements, Strip& strip) {
  alignas(64) std::uint8_t rows[kBlockLanes][kByteElements];
  for (std::size_t first = 0; first < kByteStripRows; first += kBlockLanes) {
    for (std::size_t r = 0; r < kBlockLanes; ++r) {
      alignas(64) float scales[kByteElements / 16];
      alignas(64) float offsets[kByteElements / 16];
      constexpr std::size_t kGroups = Bytes::kElements / Bytes::kGroup;
      const std::byte* block = weight + std::min(first + r, count - 1) * row_bytes;
      for (std::size_t i = 0; i < elements; i += Bytes::kElements, block += block_bytes)
        Bytes::read(block, rows[r] + i, scales + i / Bytes::kGroup, offsets + i / Bytes::kGroup);
      for (std::size_t g = 0; g < elements / Bytes::kElements * kGroups; ++g)
        strip.put_scale(g, first + r, scales[g], Bytes::kCentre == 0 ? offsets[g] : 0);
    }
    put_side_by_side(rows, elements, first, strip);
  }
}

// ---- Products

// sums[t][r] (+)= strip[r][..] * x[t][..] for kTokens token rows, from `row` on. kSteps is how often a sum of the dot
// takes four bytes before it must be widened.
template <class Dot, std::size_t kGroup, std::size_t kSteps, bool kHasOffsets, std::size_t kTokens>
HWY_NOINLINE void byte_tile(const ByteStrip& strip, const RoundedX& x, std::size_t row, std::size_t block,
                            std::size_t elements, float* HWY_RESTRICT sums) {
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const hn::Repartition<std::uint8_t, BlockTag> d8;
  constexpr std::size_t kFours = kGroup / 4;
  static_assert(kFours % kSteps == 0 && kSteps % Dot::kFours == 0);
  const std::int8_t* const bytes = x.block(block, row);
  BlockVec totals[kTokens][2];
  HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
      const float* const sum = sums + t * kByteBlockRows + v * kBlockLanes;
      totals[t][v] = block == 0 ? hn::Zero(d) : hn::Load(d, sum);
    }
  }
  for (std::size_t g = 0; g < elements / kGroup; ++g) {
    const float* const x_scales = &x.scale(block * (kByteElements / kByteXGroup) + g * kGroup / kByteXGroup, row);
    const GroupSum* const x_sums = &x.sum(block * (kByteElements / kGroup) + g, row);
    const BlockVec scales[2] = {hn::Load(d, strip.scales[g]), hn::Load(d, strip.scales[g] + kBlockLanes)};
    for (std::size_t begin = 0; begin < kFours; begin += kSteps) {
      typename Dot::Sum products[kTokens][2];
      HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
        const std::int32_t start = kHasOffsets || begin != 0 ? 0 : x_sums[t].below_centre;
        HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) products[t][v] = Dot::begin(start);
      }
      const auto* const w = strip.bytes + g * kFours + begin;
      const std::int8_t* const from = bytes + g * kGroup + begin * 4;
      HWY_UNROLL(8) for (std::size_t k = 0; k < kSteps; k += Dot::kFours) {
        WeightBytes low[Dot::kFours];
        WeightBytes high[Dot::kFours];
        HWY_UNROLL(2) for (std::size_t i = 0; i < Dot::kFours; ++i) {
          low[i] = hn::Load(d8, w[k + i][0]);
          high[i] = hn::Load(d8, w[k + i][kBlockLanes]);
        }
        HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
          LaneSums tokens[Dot::kFours];
          HWY_UNROLL(2) for (std::size_t i = 0; i < Dot::kFours; ++i) {
            std::int32_t four;
            std::memcpy(&four, from + t * kByteElements + 4 * (k + i), sizeof(four));
            tokens[i] = hn::Set(di, four);
          }
          products[t][0] = Dot::add(products[t][0], low, tokens);
          products[t][1] = Dot::add(products[t][1], high, tokens);
        }
      }
      HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
        const std::int32_t start = kHasOffsets || begin != 0 ? 0 : x_sums[t].below_centre;
        const auto scale = hn::Set(d, x_scales[t]);
        HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
          const auto sum = hn::ConvertTo(d, Dot::template end<kHasOffsets>(products[t][v], start));
          totals[t][v] = hn::MulAdd(sum, hn::Mul(scale, scales[v]), totals[t][v]);
        }
      }
    }
    if constexpr (kHasOffsets) {
      const BlockVec offsets[2] = {hn::Load(d, strip.offsets[g]), hn::Load(d, strip.offsets[g] + kBlockLanes)};
      HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
        const auto sum = hn::Set(d, x_sums[t].times_scale);
        HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) totals[t][v] = hn::MulAdd(sum, offsets[v], totals[t][v]);
      }
    }
  }
  HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < 2; ++v) hn::Store(totals[t][v], d, sums + t * kByteBlockRows + v * kBlockLanes);
  }
}

// Multiplies a strip by all token rows.
template <class Dot, std::size_t kGroup, std::size_t kSteps, bool kHasOffsets>
HWY_INLINE void multiply_strip(const ByteStrip& strip, const RoundedX& x, std::size_t block, std::size_t elements,
                               float* sums) {
  std::size_t t = 0;
  const auto take = [&]<std::size_t kTokens>() {
    for (; t + kTokens <= x.rows; t += kTokens)
      byte_tile<Dot, kGroup, kSteps, kHasOffsets, kTokens>(strip, x, t, block, elements, sums + t * kByteBlockRows);
  };
  take.template operator()<Dot::kTokens>();
  take.template operator()<Dot::kTokens / 2>();
  take.template operator()<1>();
}

// Where the products of token rows go.
struct StripResults {
  const float* const* residual;  // per token row; null if there is none
  float* const* out;             // per token row
};

// Computes the weight rows of `range` strip by strip. load(from, count, elements) makes the strip of so many rows and
// elements; multiply(block, elements, sums) adds its products with that block of all token rows to
// sums [rows][kByteBlockRows]. With kParts 2 the sums of two rows are those of one token row.
template <DType kDType, std::size_t kParts = 1, class Load, class Multiply>
HWY_INLINE void multiply_strips(const LinearArgs& args, const std::byte* weight, std::size_t rows,
                                const StripResults& results, Range range, float* sums, const Load& load,
                                const Multiply& multiply) {
  const DTypeInfo& info = info_of(kDType);
  for (std::uint64_t r = range.begin; r < range.end; r += kByteBlockRows) {
    const std::size_t count = std::min<std::uint64_t>(range.end - r, kByteBlockRows);
    for (std::size_t begin = 0; begin < args.k; begin += kByteElements) {
      const std::size_t elements = std::min(args.k - begin, kByteElements);
      const std::byte* const from = weight + r * args.weight_row_bytes + begin / info.block_elements * info.block_bytes;
      for (std::size_t i = 0; i < count; i += kByteStripRows) {
        load(from + i * args.weight_row_bytes, std::min(count - i, kByteStripRows), elements);
        multiply(begin / kByteElements, elements, sums + i);
      }
    }
    for (std::size_t t = 0; t < rows / kParts; ++t) {
      float* const sum = sums + kParts * t * kByteBlockRows;
      float* const out = results.out[t] + r;
      const float* const residual = results.residual[t];
      if constexpr (kParts == 2)
        for (std::size_t i = 0; i < count; ++i) sum[i] += sum[kByteBlockRows + i];
      for (std::size_t i = 0; i < count; ++i) out[i] = sum[i] + (residual == nullptr ? 0 : residual[r + i]);
    }
  }
}

// Computes the weight rows of `range`. With kParts 2 two rows of x are one token row.
template <class Dot, DType kDType, std::size_t kParts = 1>
HWY_NOINLINE void multiply_bytes(const LinearArgs& args, const std::byte* weight, const RoundedX& x,
                                 const StripResults& results, Range range, std::byte* scratch) {
  using Bytes = BlockBytes<kDType>;
  constexpr std::size_t kSteps = Dot::template steps<Bytes::kMost, Bytes::kGroup>();
  using Strip = typename Dot::Strip;
  auto& strip = *reinterpret_cast<Strip*>(scratch);
  static_assert(sizeof(Strip) <= kByteStripBytes);
  multiply_strips<kDType, kParts>(
      args, weight, x.rows, results, range, reinterpret_cast<float*>(scratch + kByteStripBytes),
      [&](const std::byte* from, std::size_t count, std::size_t elements) {
        load_strip<Bytes>(from, args.weight_row_bytes, info_of(kDType).block_bytes, count, elements, strip);
      },
      [&](std::size_t block, std::size_t elements, float* sums) {
        multiply_strip<Dot, Bytes::kGroup, kSteps, Bytes::kCentre == 0>(strip, x, block, elements, sums);
      });
}

// Returns whether the dot can multiply the dtype's bytes.
template <class Dot, DType kDType>
constexpr bool multiplies() {
  using Bytes = BlockBytes<kDType>;
  if constexpr (Bytes::kElements == 0)
    return false;
  else
    return Dot::template steps<Bytes::kMost, Bytes::kGroup>() != 0;
}

// Calls use<dot, dtype>() with the dot of this processor and returns true if there is one for the dtype.
template <class Use>
HWY_INLINE bool for_bytes_of(DType dtype, const Use& use) {
  const bool has_fours = multiplies_fours();
  return with_dtype(dtype, [&]<DType kDType>() {
#if SHUNT_HAS_BYTE_MATRIX
    if constexpr (multiplies<MatrixDot, kDType>()) {
      if (multiplies_matrices()) {
        use.template operator()<MatrixDot, kDType>();
        return true;
      }
    }
#endif
    if constexpr (multiplies<FoursDot, kDType>()) {
      if (has_fours) {
        use.template operator()<FoursDot, kDType>();
        return true;
      }
    }
#if HWY_TARGET == HWY_NEON
    if constexpr (multiplies<CentredDot, kDType>()) {
      if (has_fours) {
        use.template operator()<CentredDot, kDType>();
        return true;
      }
    }
#else
    if constexpr (multiplies<PairsDot, kDType>()) {
      use.template operator()<PairsDot, kDType>();
      return true;
    } else if constexpr (multiplies<EightsDot, kDType>()) {
      use.template operator()<EightsDot, kDType>();
      return true;
    }
#endif
    return false;
  });
}

// Returns how the bytes of a dtype's weights are grouped; zeros if they are not unpacked to bytes.
HWY_INLINE ByteGroups byte_groups(DType dtype) {
  ByteGroups groups;
  with_dtype(dtype, [&]<DType kDType>() {
    using Bytes = BlockBytes<kDType>;
    if constexpr (Bytes::kElements != 0) groups = {.elements = Bytes::kGroup, .centre = Bytes::kCentre};
    return true;
  });
  return groups;
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_BYTE_DOT

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Returns whether this instruction set, on this processor, multiplies a dtype's weights in bytes.
inline bool has_byte_tiles(DType dtype) {
#if SHUNT_HAS_BYTE_DOT
  return for_bytes_of(dtype, []<class, DType>() {});
#else
  static_cast<void>(dtype);
  return false;
#endif
}

// Returns whether x is rounded alike for weights of two dtypes. REQUIRES: has_byte_tiles() for both.
inline bool rounds_alike(DType one, DType other) {
#if SHUNT_HAS_BYTE_DOT
  return byte_groups(one) == byte_groups(other);
#else
  return one == other;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
