// linear in words, for many token rows: weights whose bytes are too large to be summed in pairs, and weights of 16-bit
// floating dtypes, which are rounded like x. Included by row_products_simd.cpp, once per instruction set.
//
// Phase 1 rounds x, for quantized weights as for few rows (word_row-inl.h). In phase 2 each thread unpacks strips of
// weight rows as in bytes (byte_tile-inl.h), but to words. Products are summed exactly within a group; each group's sum
// becomes F32.
#if defined(SHUNT_OPS_WORD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_WORD_TILE_INL_H_
#undef SHUNT_OPS_WORD_TILE_INL_H_
#else
#define SHUNT_OPS_WORD_TILE_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/linear/byte_tile-inl.h"
#include "ops/linear/word_row-inl.h"

#undef SHUNT_HAS_WORD_TILES
#define SHUNT_HAS_WORD_TILES SHUNT_HAS_GROUP_BYTES

#if SHUNT_HAS_WORD_TILES
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Token rows of a tile, for whose sums there are registers.
inline constexpr std::size_t kWordTileTokens = HWY_TARGET == HWY_AVX3 ? 12 : 6;

// Weight rows side by side, two words of each row together.
struct WordStrip {
  alignas(64) std::int16_t words[kByteElements / 2][kByteStripRows][2];
  alignas(64) float scales[kByteElements / 16][kByteStripRows];

  // Stores two words of kBlockLanes rows.
  HWY_INLINE void put(std::size_t pair, std::size_t first, WeightBytes v) {
    const hn::Repartition<std::int16_t, BlockTag> d16;
    hn::Store(hn::BitCast(d16, v), d16, words[pair][first]);
  }
  HWY_INLINE void put_scale(std::size_t group, std::size_t row, float scale, float) { scales[group][row] = scale; }
};

// Makes words of bytes. Of each four neighbours of a row, the even ones come first, as in WordsOfX.
template <int kCentre>
struct WideningStrip : WordStrip {
  HWY_INLINE void put(std::size_t four, std::size_t first, WeightBytes v) {
    const hn::Repartition<std::uint8_t, BlockTag> d8;
    const hn::Repartition<std::uint16_t, BlockTag> du16;
    const auto both = hn::BitCast(du16, v);
    const auto centre = hn::Set(du16, kCentre);
    WordStrip::put(2 * four, first, hn::BitCast(d8, hn::Sub(hn::And(both, hn::Set(du16, 255)), centre)));
    WordStrip::put(2 * four + 1, first, hn::BitCast(d8, hn::Sub(hn::ShiftRight<8>(both), centre)));
  }
};

// Rounds a group and returns its scale, which is NaN if an element is not finite. Scales that could not be inverted in
// F32 are 0.
HWY_INLINE float round_finely(const float* x, std::int16_t* words) {
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const hn::Rebind<std::int16_t, BlockTag> d16;
  constexpr float kLeast = 0x1p-100F;
  // Magnitudes that are not finite exceed all others when compared as integers.
  auto most = hn::Zero(di);
  for (std::size_t i = 0; i < kFineGroup; i += kBlockLanes)
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  const float largest = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, most)));
  const bool is_zero = largest < kLeast;
  const auto inverse = hn::Set(d, is_zero ? 0 : kMostFine / largest);
  for (std::size_t i = 0; i < kFineGroup; i += kBlockLanes)
    hn::StoreU(hn::DemoteTo(d16, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse))), d16, words + i);
  if (!(largest <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::quiet_NaN();
  return is_zero ? 0 : largest / kMostFine;
}

// Rounds up to 256 elements of a token row, or of a weight's; zeros fill the last group. Returns how many groups there
// are.
template <class PutScale>
HWY_INLINE std::size_t round_groups(DType dtype, const std::byte* from, std::size_t elements, std::int16_t* words,
                                    const PutScale& put_scale) {
  alignas(64) float widened[kWordBlock];
  const std::size_t groups = (elements + kFineGroup - 1) / kFineGroup;
  decode_row_simd(dtype, from, elements, widened);
  std::fill(widened + elements, widened + groups * kFineGroup, 0.0F);
  for (std::size_t g = 0; g < groups; ++g) put_scale(g, round_finely(widened + g * kFineGroup, words + g * kFineGroup));
  return groups;
}

// Rounds `elements` of `count` rows at `weight`, as load_strip() unpacks them.
template <DType kDType>
HWY_NOINLINE void round_strip(const std::byte* weight, std::size_t row_bytes, std::size_t count, std::size_t elements,
                              WordStrip& strip) {
  alignas(64) std::int16_t rows[kBlockLanes][kByteElements];
  for (std::size_t first = 0; first < kByteStripRows; first += kBlockLanes) {
    std::size_t groups = 0;
    for (std::size_t r = 0; r < kBlockLanes; ++r)
      groups = round_groups(kDType, weight + std::min(first + r, count - 1) * row_bytes, elements, rows[r],
                            [&](std::size_t g, float scale) { strip.put_scale(g, first + r, scale, 0); });
    put_side_by_side(reinterpret_cast<const std::uint8_t(*)[2 * kByteElements]>(rows), groups * 2 * kFineGroup, first,
                     strip);
  }
}

// Returns sum + the products of two neighbours in each lane. Written in assembly because gcc adds products first, and
// sums, then in memory, last; and because Highway compiles this pass without VNNI.
template <bool kHasVnni>
HWY_INLINE LaneSums add_pairs(LaneSums sum, LaneSums w, LaneSums x) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kHasVnni)
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
  else
    asm("vpaddd %1, %0, %0" : "+v"(sum.raw) : "v"(_mm512_madd_epi16(w.raw, x.raw)));
#else
  if constexpr (kHasVnni)
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum.raw) : "x"(w.raw), "x"(x.raw));
  else
    asm("vpaddd %1, %0, %0" : "+x"(sum.raw) : "x"(_mm256_madd_epi16(w.raw, x.raw)));
#endif
  return sum;
}

// Returns where the words of a row begin whose pairs a strip has from an even pair on. WordsOfX has the even ones of a
// step before the odd ones.
template <class X>
constexpr std::size_t word_of_pair(std::size_t pair) {
  if constexpr (std::is_same_v<X, FineWords>) return 2 * pair;
  constexpr std::size_t kPairs = kWordStep / 2;
  return pair / kPairs * kWordStep + pair % kPairs;
}

// sums[t][r] (+)= strip[r][..] * x[t][..] for kTokens token rows, from `row` on. `groups` of kGroup elements are there.
template <bool kHasVnni, std::size_t kGroup, std::size_t kTokens, class X>
HWY_NOINLINE void word_tile(const WordStrip& strip, const X& x, std::size_t row, std::size_t block, std::size_t groups,
                            float* HWY_RESTRICT sums) {
  constexpr bool kIsFine = std::is_same_v<X, FineWords>;
  constexpr std::size_t kPairs = kGroup / 2;
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const std::int16_t* const words = x.words(row, block);
  BlockVec totals[kTokens][2];
  HWY_UNROLL(12) for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) totals[t][v] = hn::Zero(d);
  }
  for (std::size_t g = 0; g < groups; ++g) {
    LaneSums products[kTokens][2];
    HWY_UNROLL(12) for (std::size_t t = 0; t < kTokens; ++t) {
      HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) products[t][v] = hn::Zero(di);
    }
    const std::int16_t* const from = words + word_of_pair<X>(g * kPairs);
    for (std::size_t k = 0; k < kPairs; k += 2) {
      const auto* const w = strip.words + g * kPairs + k;
      HWY_UNROLL(2) for (std::size_t odd = 0; odd < 2; ++odd) {
        const auto low = hn::Load(di, reinterpret_cast<const std::int32_t*>(w[odd][0]));
        const auto high = hn::Load(di, reinterpret_cast<const std::int32_t*>(w[odd][kBlockLanes]));
        HWY_UNROLL(12) for (std::size_t t = 0; t < kTokens; ++t) {
          std::int32_t pair;
          std::memcpy(&pair, from + t * kWordBlock + (kIsFine ? 2 * (k + odd) : k + kWordStep / 2 * odd), sizeof(pair));
          const auto tokens = hn::Set(di, pair);
          products[t][0] = add_pairs<kHasVnni>(products[t][0], low, tokens);
          products[t][1] = add_pairs<kHasVnni>(products[t][1], high, tokens);
        }
      }
    }
    const BlockVec scales[2] = {hn::Load(d, strip.scales[g]), hn::Load(d, strip.scales[g] + kBlockLanes)};
    HWY_UNROLL(12) for (std::size_t t = 0; t < kTokens; ++t) {
      HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
        auto scale = scales[v];
        if constexpr (kIsFine)
          scale = hn::Mul(scale, hn::Set(d, x.scale(row, block * (kWordBlock / kFineGroup) + g)[t]));
        totals[t][v] = hn::MulAdd(hn::ConvertTo(d, products[t][v]), scale, totals[t][v]);
      }
    }
  }
  HWY_UNROLL(12) for (std::size_t t = 0; t < kTokens; ++t) {
    auto scale = hn::Set(d, 1);
    if constexpr (!kIsFine) scale = hn::Set(d, x.scales(row + t)[block]);
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
      float* const sum = sums + t * kByteBlockRows + v * kBlockLanes;
      hn::Store(hn::MulAdd(totals[t][v], scale, block == 0 ? hn::Zero(d) : hn::Load(d, sum)), d, sum);
    }
  }
}

// Multiplies a strip by all token rows.
template <std::size_t kGroup, class X>
HWY_INLINE void multiply_word_strip(const WordStrip& strip, const X& x, std::size_t block, std::size_t elements,
                                    float* sums) {
  const std::size_t groups = (elements + kGroup - 1) / kGroup;
  std::size_t t = 0;
  const auto take = [&]<std::size_t kTokens>() {
    for (; t + kTokens <= x.rows; t += kTokens) {
      float* const to = sums + t * kByteBlockRows;
      if (multiplies_fours())
        word_tile<true, kGroup, kTokens>(strip, x, t, block, groups, to);
      else
        word_tile<false, kGroup, kTokens>(strip, x, t, block, groups, to);
    }
  };
  take.template operator()<kWordTileTokens>();
  take.template operator()<kWordTileTokens / 2>();
  take.template operator()<1>();
}

// Computes the weight rows of `range`. `memory` holds x: WordsOfX of quantized weights, FineWords of others.
template <DType kDType>
HWY_NOINLINE void multiply_word_tiles(const LinearArgs& args, const std::byte* weight, std::byte* memory,
                                      std::size_t rows, const StripResults& results, Range range, std::byte* scratch) {
  using Bytes = BlockBytes<kDType>;
  auto* const sums = reinterpret_cast<float*>(scratch + kWordStripBytes);
  static_assert(sizeof(WordStrip) <= kWordStripBytes);
  if constexpr (Bytes::kElements != 0) {
    auto& strip = *reinterpret_cast<WideningStrip<Bytes::kCentre>*>(scratch);
    const WordsOfX x{memory, rows, word_blocks(args.k)};
    multiply_strips<kDType>(
        args, weight, rows, results, range, sums,
        [&](const std::byte* from, std::size_t count, std::size_t elements) {
          load_strip<Bytes>(from, args.weight_row_bytes, info_of(kDType).block_bytes, count, elements, strip);
        },
        [&](std::size_t block, std::size_t elements, float* to) {
          multiply_word_strip<Bytes::kGroup>(strip, x, block, elements, to);
        });
  } else {
    auto& strip = *reinterpret_cast<WordStrip*>(scratch);
    const FineWords x{memory, rows, word_blocks(args.k)};
    multiply_strips<kDType>(
        args, weight, rows, results, range, sums,
        [&](const std::byte* from, std::size_t count, std::size_t elements) {
          round_strip<kDType>(from, args.weight_row_bytes, count, elements, strip);
        },
        [&](std::size_t block, std::size_t elements, float* to) {
          multiply_word_strip<kFineGroup>(strip, x, block, elements, to);
        });
  }
}

// Calls use<dtype>() and returns true if weights of the dtype are multiplied by tiles in words: quants without offsets
// whose bytes are too large for sums of pairs, and 16-bit floating weights.
template <class Use>
HWY_INLINE bool for_word_tiles_of(DType dtype, const Use& use) {
  return with_dtype(dtype, [&]<DType kDType>() {
    constexpr bool kHasBytes = BlockBytes<kDType>::kElements != 0;
    constexpr bool kIsTooLarge = kHasBytes && !multiplies<PairsDot, kDType>() && !multiplies<EightsDot, kDType>();
    if constexpr (kIsTooLarge || rounds_weight(kDType)) {
      if constexpr (kHasBytes) static_assert(BlockBytes<kDType>::kCentre != 0);
      use.template operator()<kDType>();
      return true;
    }
    return false;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_WORD_TILES

#endif  // per-target include guard
