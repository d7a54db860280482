// linear in words, for many token rows: weights whose bytes are too large to be summed in pairs. Included by
// linear_simd.cpp, once per instruction set.
//
// Phase 1 rounds x as for few rows (word_row-inl.h). In phase 2 each thread unpacks strips of weight rows as in bytes
// (byte_tile-inl.h), but to words. Products are summed exactly within a group; each group's sum becomes F32.
#if defined(SHUNT_OPS_WORD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_WORD_TILE_INL_H_
#undef SHUNT_OPS_WORD_TILE_INL_H_
#else
#define SHUNT_OPS_WORD_TILE_INL_H_
#endif

#include "ops/linear/byte_tile-inl.h"
#include "ops/linear/word_row-inl.h"

#if SHUNT_HAS_GROUP_BYTES
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Token rows of a tile, for whose sums there are registers.
inline constexpr std::size_t kWordTileTokens = 6;

// Weight rows side by side. Of each four neighbours of a row, the even ones come first, as in WordsOfX.
template <int kCentre>
struct WordStrip {
  alignas(64) std::int16_t words[kByteElements / 4][2][kByteStripRows][2];
  alignas(64) float scales[kByteElements / 16][kByteStripRows];

  // Stores four bytes of kBlockLanes rows.
  HWY_INLINE void put(std::size_t four, std::size_t first, WeightBytes v) {
    const hn::Repartition<std::uint16_t, BlockTag> du16;
    const hn::Repartition<std::int16_t, BlockTag> d16;
    const auto both = hn::BitCast(du16, v);
    const auto centre = hn::Set(d16, kCentre);
    const auto even = hn::BitCast(d16, hn::And(both, hn::Set(du16, 255)));
    const auto odd = hn::BitCast(d16, hn::ShiftRight<8>(both));
    hn::Store(hn::Sub(even, centre), d16, words[four][0][first]);
    hn::Store(hn::Sub(odd, centre), d16, words[four][1][first]);
  }
  HWY_INLINE void put_scale(std::size_t group, std::size_t row, float scale, float) { scales[group][row] = scale; }
};

// Returns sum + the products of two neighbours in each lane. Written in assembly because gcc adds products first, and
// sums, then in memory, last.
HWY_INLINE LaneSums add_pairs(LaneSums sum, LaneSums w, LaneSums x) {
#if HWY_TARGET == HWY_AVX3
  asm("vpaddd %1, %0, %0" : "+v"(sum.raw) : "v"(_mm512_madd_epi16(w.raw, x.raw)));
#else
  asm("vpaddd %1, %0, %0" : "+x"(sum.raw) : "x"(_mm256_madd_epi16(w.raw, x.raw)));
#endif
  return sum;
}

// sums[t][r] (+)= strip[r][..] * x[t][..] for kTokens token rows, from `row` on.
template <std::size_t kGroup, int kCentre, std::size_t kTokens>
HWY_NOINLINE void word_tile(const WordStrip<kCentre>& strip, const WordsOfX& x, std::size_t row, std::size_t block,
                            std::size_t elements, float* HWY_RESTRICT sums) {
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const std::int16_t* const words = x.words(row, block);
  BlockVec totals[kTokens][2];
  HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) totals[t][v] = hn::Zero(d);
  }
  for (std::size_t g = 0; g < elements / kGroup; ++g) {
    LaneSums products[kTokens][2];
    HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
      HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) products[t][v] = hn::Zero(di);
    }
    // The even elements of 32 come before the odd ones.
    const std::int16_t* const from = words + g * kGroup / 32 * 32 + g * kGroup % 32 / 2;
    for (std::size_t k = 0; k < kGroup / 4; ++k) {
      const auto& w = strip.words[g * kGroup / 4 + k];
      HWY_UNROLL(2) for (std::size_t odd = 0; odd < 2; ++odd) {
        const auto low = hn::Load(di, reinterpret_cast<const std::int32_t*>(w[odd][0]));
        const auto high = hn::Load(di, reinterpret_cast<const std::int32_t*>(w[odd][kBlockLanes]));
        HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
          std::int32_t pair;
          std::memcpy(&pair, from + t * kWordBlock + 16 * odd + 2 * k, sizeof(pair));
          const auto tokens = hn::Set(di, pair);
          products[t][0] = add_pairs(products[t][0], low, tokens);
          products[t][1] = add_pairs(products[t][1], high, tokens);
        }
      }
    }
    const BlockVec scales[2] = {hn::Load(d, strip.scales[g]), hn::Load(d, strip.scales[g] + kBlockLanes)};
    HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
      HWY_UNROLL(2)
      for (std::size_t v = 0; v < 2; ++v)
        totals[t][v] = hn::MulAdd(hn::ConvertTo(d, products[t][v]), scales[v], totals[t][v]);
    }
  }
  HWY_UNROLL(6) for (std::size_t t = 0; t < kTokens; ++t) {
    const auto scale = hn::Set(d, x.scales(row + t)[block]);
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
      float* const sum = sums + t * kByteBlockRows + v * kBlockLanes;
      hn::Store(hn::MulAdd(totals[t][v], scale, block == 0 ? hn::Zero(d) : hn::Load(d, sum)), d, sum);
    }
  }
}

// Computes the weight rows of `range`.
template <DType kDType>
HWY_NOINLINE void multiply_word_tiles(const LinearArgs& args, const std::byte* weight, const WordsOfX& x,
                                      const StripResults& results, Range range, std::byte* scratch) {
  using Bytes = BlockBytes<kDType>;
  using Strip = WordStrip<Bytes::kCentre>;
  auto& strip = *reinterpret_cast<Strip*>(scratch);
  static_assert(sizeof(Strip) <= kWordStripBytes);
  multiply_strips<kDType>(
      args, weight, x.rows, results, range, strip, reinterpret_cast<float*>(scratch + kWordStripBytes),
      [&](std::size_t block, std::size_t elements, float* sums) {
        std::size_t t = 0;
        const auto take = [&]<std::size_t kTokens>() {
          for (; t + kTokens <= x.rows; t += kTokens)
            word_tile<Bytes::kGroup, Bytes::kCentre, kTokens>(strip, x, t, block, elements, sums + t * kByteBlockRows);
        };
        take.template operator()<kWordTileTokens>();
        take.template operator()<kWordTileTokens / 2>();
        take.template operator()<1>();
      });
}

// Calls use<dtype>() and returns true if weights of the dtype are multiplied by tiles in words: those that have no
// offsets, and whose bytes are too large for sums of pairs.
template <class Use>
HWY_INLINE bool for_word_tiles_of(DType dtype, const Use& use) {
  return with_dtype(dtype, [&]<DType kDType>() {
    using Bytes = BlockBytes<kDType>;
    if constexpr (Bytes::kElements != 0 && !multiplies<PairsDot, kDType>() && !multiplies<EightsDot, kDType>()) {
      static_assert(Bytes::kCentre != 0);
      use.template operator()<kDType>();
      return true;
    }
    return false;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_GROUP_BYTES

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Returns whether this instruction set has tiles in words for weights of a dtype.
inline bool multiplies_word_tiles(DType dtype) {
#if SHUNT_HAS_GROUP_BYTES
  return for_word_tiles_of(dtype, []<DType>() {});
#else
  static_cast<void>(dtype);
  return false;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
