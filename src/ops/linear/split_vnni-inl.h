// The products of split_row-inl.h on AVX-512 with VNNI. Included by it, once per instruction set.
//
// Products are summed exactly within a block, as in word_row-inl.h, and so is what the centre of the bytes adds.
#if defined(SHUNT_OPS_SPLIT_VNNI_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_SPLIT_VNNI_INL_H_
#undef SHUNT_OPS_SPLIT_VNNI_INL_H_
#else
#define SHUNT_OPS_SPLIT_VNNI_INL_H_
#endif

#include <cstring>

#include "base/system/cpu_features.h"
#include "ops/linear/few_tokens-inl.h"
#include "ops/linear/word_blocking.h"
#include "ops/quantize/scaled_quants-inl.h"

#if SHUNT_HAS_NIBBLE_BLOCKS
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Whether weights of a dtype are multiplied by SplitX.
template <DType kDType>
constexpr bool kSplitsX = NibbleBlocks<kDType>::kElements != 0 || ScaledQuants<kDType, false>::kElements != 0;

// Calls use<Blocks>() with what reads weights of a dtype.
template <DType kDType, class Use>
HWY_INLINE void for_split_blocks_of(const Use& use) {
  if constexpr (NibbleBlocks<kDType>::kElements != 0) {
    use.template operator()<NibbleBlocks<kDType>>();
  } else if (cpu_features().gfni) {
    use.template operator()<ScaledQuants<kDType, true>>();
  } else {
    use.template operator()<ScaledQuants<kDType, false>>();
  }
}

// Weight rows that are multiplied at once.
template <class Blocks, std::size_t kTokens>
constexpr std::size_t kSplitRows = Blocks::kElements == kWordBlock && kTokens == 1 ? 2 : 1;

// Rounds 256 elements of a token row, to the same integers as round_words().
static HWY_NOINLINE void round_split(const float* x, const SplitX& to, std::size_t row, std::size_t block) {
  const WordScale scale = word_scale(x);
  to.scales(row)[block] = scale.scale;
  const __m512 inverse = _mm512_set1_ps(scale.inverse);
  for (std::size_t part = 2 * block; part < 2 * block + 2; ++part) {
    std::int8_t* const bytes = to.bytes(row, part);
    std::int32_t* const sums = to.sums(row) + part * SplitX::kSums;
    float* group_sum = to.group_sums(row) + part * SplitX::kGroupSums / 2;
    for (std::size_t group = 0; group < 4; ++group) {
      __m512i sum = _mm512_setzero_si512();
      for (std::size_t half = 0; half < 2; ++half, x += 16) {
        const __m512i integers = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
        const __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(integers, 24), 24);
        const __m512i high = _mm512_srai_epi32(_mm512_sub_epi32(integers, low), 8);
        std::int8_t* const at = bytes + half * kWordElements + 16 * group;
        _mm_store_si128(reinterpret_cast<__m128i*>(at), _mm512_cvtepi32_epi8(high));
        _mm_store_si128(reinterpret_cast<__m128i*>(at + kWordElements / 2), _mm512_cvtepi32_epi8(low));
        sum = _mm512_sub_epi32(sum, integers);
        *group_sum++ = static_cast<float>(_mm512_reduce_add_epi32(integers)) * scale.scale;
      }
      sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
      sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
      _mm_store_si128(reinterpret_cast<__m128i*>(sums + 4 * group),
                      _mm512_castsi512_si128(_mm512_maskz_compress_epi32(0x1111, sum)));
    }
  }
}

HWY_INLINE __m512i add_products(__m512i sums, __m512i weight, const std::int8_t* x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weight), "m"(*reinterpret_cast<const __m512i*>(x)));
  return sums;
}

// Sums of products with the high bytes of x and with the low ones.
struct SplitSums {
  __m512i upper;
  __m512i lower;

  static HWY_INLINE SplitSums from(__m512i sum) { return {_mm512_setzero_si512(), sum}; }
  // Adds those of 128 elements.
  HWY_INLINE void add(const ByteHalves& weight, const std::int8_t* x) {
    upper = add_products(upper, weight.first, x);
    upper = add_products(upper, weight.second, x + kWordElements);
    lower = add_products(lower, weight.first, x + kWordElements / 2);
    lower = add_products(lower, weight.second, x + kWordElements / 2 + kWordElements);
  }
  [[nodiscard]] HWY_INLINE ProductVec total() const {
    return hn::ConvertTo(ProductTag(), ProductSums{_mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower)});
  }
};

// Adds the products of 128 elements. `x` and `sums` are those of their part.
template <class Blocks, std::size_t kTokens>
HWY_INLINE void multiply_split_part(const Blocks& weight, const std::int8_t* const (&x)[kTokens],
                                    const std::int32_t* const (&sums)[kTokens], const ProductVec (&x_scales)[kTokens],
                                    ProductVec (&totals)[kTokens]) {
  const ByteHalves quants = weight.quants();
  const ProductVec scales = weight.scales();
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    SplitSums sum = SplitSums::from(_mm512_slli_epi32(_mm512_load_si512(sums[t]), Blocks::kCentreBits));
    sum.add(quants, x[t]);
    totals[t] = hn::MulAdd(sum.total(), hn::Mul(scales, x_scales[t]), totals[t]);
  }
}

// Adds the products of a block of 256 elements of each weight row.
template <class Blocks, std::size_t kRows, std::size_t kTokens>
HWY_INLINE void multiply_scaled_blocks(const std::byte* const (&from)[kRows], const SplitX& x, std::size_t row,
                                       std::size_t block, const std::int8_t* bytes,
                                       ProductVec (&totals)[kRows][kTokens]) {
  const ProductTag d;
  SplitSums start[kTokens];
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    start[t] = SplitSums::from(_mm512_setzero_si512());
    if constexpr (Blocks::kCentreBits == 0) continue;
    const std::int32_t* const sums = x.sums(row + t) + 2 * block * SplitX::kSums;
    const __m512i both = _mm512_add_epi32(_mm512_load_si512(sums), _mm512_load_si512(sums + SplitX::kSums));
    start[t] = SplitSums::from(_mm512_slli_epi32(both, Blocks::kCentreBits));
  }
  HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) {
    const Blocks weight(from[r]);
    SplitSums products[kTokens];
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) products[t] = start[t];
    const auto add_part = [&]<int kPart>() HWY_ATTR {
      const ByteHalves quants = weight.template quants<kPart>();
      HWY_UNROLL(4)
      for (std::size_t t = 0; t < kTokens; ++t) products[t].add(quants, bytes + (2 * t + kPart) * 2 * kWordElements);
    };
    add_part.template operator()<0>();
    add_part.template operator()<1>();
    const ProductVec scale = weight.scale();
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
      const ProductVec factor = hn::Mul(scale, hn::Set(d, x.scales(row + t)[block]));
      totals[r][t] = Blocks::kNegative ? hn::NegMulAdd(products[t].total(), factor, totals[r][t])
                                       : hn::MulAdd(products[t].total(), factor, totals[r][t]);
    }
    if constexpr (Blocks::kHasOffsets) {
      const ProductVec offsets = weight.offsets();
      HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
        const ProductVec sums = hn::LoadU(d, x.group_sums(row + t) + block * SplitX::kGroupSums);
        totals[r][t] = hn::NegMulAdd(offsets, sums, totals[r][t]);
      }
    }
  }
}

// Adds the products of weight rows with kTokens token rows from `row` on.
template <class Blocks, std::size_t kRows, std::size_t kTokens>
HWY_INLINE void multiply_split_row(const std::byte* const (&rows)[kRows], const SplitX& x, std::size_t row,
                                   std::size_t k, ProductVec (&totals)[kRows][kTokens]) {
  if constexpr (Blocks::kElements == kWordBlock) {
    const std::byte* from[kRows];
    HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) from[r] = rows[r];
    const std::int8_t* bytes = x.bytes(row, 0);
    const std::size_t pitch = x.rows * 2 * kWordBlock;
    for (std::size_t block = 0; block < k / kWordBlock; ++block, bytes += pitch) {
      HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) prefetch(from[r], Blocks::kBytes);
      multiply_scaled_blocks<Blocks>(from, x, row, block, bytes, totals);
      HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) from[r] += Blocks::kBytes;
    }
  } else {
    static_assert(kRows == 1);
    const std::byte* from = rows[0];
    const auto multiply_part = [&](const std::byte* blocks, std::size_t part) HWY_ATTR {
      const std::int8_t* bytes[kTokens];
      const std::int32_t* sums[kTokens];
      ProductVec scales[kTokens];
      for (std::size_t t = 0; t < kTokens; ++t) {
        bytes[t] = x.bytes(row + t, part);
        sums[t] = x.sums(row + t) + part * SplitX::kSums;
        scales[t] = hn::Set(ProductTag(), x.scales(row + t)[part / 2]);
      }
      multiply_split_part(Blocks(blocks), bytes, sums, scales, totals[0]);
    };
    const std::size_t whole = k / kWordElements;
    for (std::size_t part = 0; part < whole; ++part, from += Blocks::kBytes) {
      prefetch(from, Blocks::kBytes);
      multiply_part(from, part);
    }
    if (const std::size_t rest = k % kWordElements; rest != 0) {
      // Blocks of zeros fill up the last part.
      alignas(64) std::byte blocks[Blocks::kBytes] = {};
      std::memcpy(blocks, from, rest / 32 * (Blocks::kBytes / 4));
      multiply_part(blocks, whole);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_NIBBLE_BLOCKS

#endif  // per-target include guard
