// linear in words, for few token rows: quants of the weight in registers, and x rounded to integers of 16 bits with a
// scale for each 256 of them. Included by row_products_simd.cpp, once per instruction set.
//
// Phase 1 rounds x. In phase 2 each thread unpacks weight rows kWordStep elements at a time and multiplies them by the
// token rows. Vectors run along k. Products are summed exactly within a group; each group's sum becomes F32. Centres
// and offsets of groups meet the sums of x over them.
#if defined(SHUNT_OPS_WORD_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_WORD_ROW_INL_H_
#undef SHUNT_OPS_WORD_ROW_INL_H_
#else
#define SHUNT_OPS_WORD_ROW_INL_H_
#endif

#include <cstring>

#include "base/system/cpu_features.h"
#include "ops/kernel.h"
#include "ops/linear/few_tokens-inl.h"
#include "ops/linear/linear.h"
#include "ops/linear/word_blocking.h"
#include "ops/quantize/group_words-inl.h"

#if SHUNT_HAS_GROUP_BYTES
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using WordSums = hn::Vec<hn::FixedTag<std::int32_t, 8>>;

// Rounds 32 elements, writes the words of the even ones and of the odd ones, and returns sums of them: of the first
// sixteen in the lower half.
HWY_INLINE WordSums round_group(const float* x, ScaleVec inverse, std::int16_t* even_words, std::int16_t* odd_words) {
  const ScaleTag d;
  __m256i evens[2];
  __m256i odds[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const __m256 low = _mm256_castsi256_ps(_mm256_cvtps_epi32(hn::Mul(hn::LoadU(d, x + 16 * i), inverse).raw));
    const __m256 high = _mm256_castsi256_ps(_mm256_cvtps_epi32(hn::Mul(hn::LoadU(d, x + 16 * i + 8), inverse).raw));
    evens[i] = _mm256_castps_si256(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    odds[i] = _mm256_castps_si256(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
  }
  // Shuffles and packs stay within halves.
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i even = _mm256_permutevar8x32_epi32(_mm256_packs_epi32(evens[0], evens[1]), in_order);
  const __m256i odd = _mm256_permutevar8x32_epi32(_mm256_packs_epi32(odds[0], odds[1]), in_order);
  _mm256_store_si256(reinterpret_cast<__m256i*>(even_words), even);
  _mm256_store_si256(reinterpret_cast<__m256i*>(odd_words), odd);
  const __m256i ones = _mm256_set1_epi16(1);
  return {_mm256_add_epi32(_mm256_madd_epi16(even, ones), _mm256_madd_epi16(odd, ones))};
}

// Rounds 256 elements of a token row.
static HWY_NOINLINE void round_words(const float* x, const WordsOfX& to, std::size_t row, std::size_t block) {
  const ScaleTag d;
  const auto [scale, one_by_scale] = word_scale(x);
  const ScaleVec inverse = hn::Set(d, one_by_scale);
  to.scales(row)[block] = scale;
  std::int16_t* const words = to.words(row, block);
  float* const sums = to.sums(row) + block * WordsOfX::kSums;
  for (std::size_t part = 0; part < 2; ++part) {
    __m256i groups[4];
    for (std::size_t g = 0; g < 4; ++g) {
      const std::size_t at = part * kWordElements + 32 * g;
      std::int16_t* const even = words + at / kWordStep * kWordStep + at % kWordStep / 2;
      groups[g] = round_group(x + at, inverse, even, even + kWordStep / 2).raw;
    }
    const __m256i sum =
        _mm256_hadd_epi32(_mm256_hadd_epi32(groups[0], groups[1]), _mm256_hadd_epi32(groups[2], groups[3]));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, WordSums{sum}), hn::Set(d, scale)), d, sums + 8 * part);
  }
}

// Returns the sums of pairs of products of kWordStep neighbours.
template <bool kHasVnni>
HWY_INLINE ProductSums multiply_step(const WordPair& weight, const std::int16_t* words) {
#if HWY_TARGET == HWY_AVX3
  const auto* const x = reinterpret_cast<const __m512i*>(words);
  ProductSums sum = {_mm512_madd_epi16(weight.even.raw, x[0])};
  if constexpr (kHasVnni) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(weight.odd.raw), "m"(x[1]));
    return sum;
  } else {
    return hn::Add(sum, ProductSums{_mm512_madd_epi16(weight.odd.raw, x[1])});
  }
#else
  const auto* const x = reinterpret_cast<const __m256i*>(words);
  return {_mm256_add_epi32(_mm256_madd_epi16(weight.even.raw, x[0]), _mm256_madd_epi16(weight.odd.raw, x[1]))};
#endif
}

// Lanes that are still to be added.
struct WordTotal {
  ProductVec products;
  ScaleVec offsets;
};

// Adds 128 elements to a block's products and, for each token row, what its sums add. Those of x are `at` words from
// the first.
template <bool kHasVnni, class Words, int kPart, std::size_t kTokens>
HWY_INLINE void multiply_part(const Words& weight, const std::int16_t* const (&words)[kTokens], std::size_t at,
                              const float* const (&sums)[kTokens], std::size_t part, ProductVec (&products)[kTokens],
                              WordTotal (&totals)[kTokens]) {
  const ProductTag d;
  const auto scales = weight.scales(kPart);
  const auto step = [&]<int kStep>() {
    const WordPair quants = weight.template words<kPart, kStep>();
    const ProductVec scale = weight.template scale<kStep>(scales);
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
      const ProductSums sum = multiply_step<kHasVnni>(quants, words[t] + at + kWordStep * kStep);
      products[t] = hn::MulAdd(hn::ConvertTo(d, sum), scale, products[t]);
    }
  };
  step.template operator()<0>();
  step.template operator()<1>();
  if constexpr (kWordElements / kWordStep == 4) {
    step.template operator()<2>();
    step.template operator()<3>();
  }
  if constexpr (Words::kHasOffsets) {
    ScaleVec offsets = scales;
    if constexpr (Words::kCentre == 0) offsets = weight.offsets(kPart);
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t)
      totals[t].offsets = hn::MulAdd(offsets, hn::LoadU(ScaleTag(), sums[t] + 8 * part), totals[t].offsets);
  }
}

// Multiplies `elements` of a weight row, whole blocks of Words, by kTokens token rows from part `part` on. Blocks of a
// row of x are `pitch` words apart.
template <bool kHasVnni, class Words, std::size_t kTokens>
HWY_INLINE void multiply_blocks(const std::byte* from, std::size_t elements,
                                const std::int16_t* const (&words)[kTokens], std::size_t pitch,
                                const float* const (&sums)[kTokens], const float* const (&scales)[kTokens],
                                std::size_t part, WordTotal (&totals)[kTokens]) {
  const ProductTag d;
  constexpr std::size_t kParts = Words::kElements / kWordElements;
  const std::size_t end = part + elements / kWordElements;
  for (; part < end; part += kParts, from += Words::kBytes) {
    prefetch(from, Words::kBytes);
    const Words weight(from);
    ProductVec products[kTokens];
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) products[t] = hn::Zero(d);
    const std::size_t at = part / 2 * pitch + part % 2 * kWordElements;
    multiply_part<kHasVnni, Words, 0>(weight, words, at, sums, part, products, totals);
    if constexpr (kParts == 2)
      multiply_part<kHasVnni, Words, 1>(weight, words, at + kWordElements, sums, part + 1, products, totals);
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t)
      totals[t].products = hn::MulAdd(products[t], hn::Set(d, scales[t][part / 2]), totals[t].products);
  }
}

// Returns the sum over all lanes.
template <class Words>
HWY_INLINE float sum_of(const WordTotal& total) {
  const ScaleTag d;
#if HWY_TARGET == HWY_AVX3
  ScaleVec lanes = hn::Add(hn::LowerHalf(total.products), hn::UpperHalf(d, total.products));
#else
  ScaleVec lanes = total.products;
#endif
  if constexpr (Words::kHasOffsets) {
    constexpr float kFactor = Words::kCentre == 0 ? 1 : -Words::kCentre;
    lanes = hn::MulAdd(total.offsets, hn::Set(d, kFactor), lanes);
  }
  return hn::GetLane(hn::SumOfLanes(d, lanes));
}

// Computes the weight rows of `range` for kTokens token rows from `row` on.
template <bool kHasVnni, DType kDType, std::size_t kTokens>
HWY_NOINLINE void multiply_word_rows(const LinearArgs& args, const std::byte* weight, const WordsOfX& x,
                                     std::size_t row, const float* const* residual, float* const* out, Range range) {
  using Words = GroupWords<kDType>;
  const ProductTag d;
  const std::int16_t* words[kTokens];
  const float* sums[kTokens];
  const float* scales[kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) {
    words[t] = x.words(row + t, 0);
    sums[t] = x.sums(row + t);
    scales[t] = x.scales(row + t);
  }
  const std::size_t pitch = x.rows * kWordBlock;
  const std::size_t whole = args.k / kWordElements * kWordElements;
  const std::uint64_t count = range.end - range.begin;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t r = range.begin + in_two_streams(i, count);
    const std::byte* const from = weight + r * args.weight_row_bytes;
    WordTotal totals[kTokens];
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) totals[t] = {hn::Zero(d), hn::Zero(ScaleTag())};
    multiply_blocks<kHasVnni, Words>(from, whole, words, pitch, sums, scales, 0, totals);
    if constexpr (Words::kElements == kWordElements) {
      if (whole != args.k) {
        // Blocks of zeros fill up the last part.
        alignas(64) std::byte rest[Words::kBytes] = {};
        const std::size_t begin = whole / kWordElements * Words::kBytes;
        std::memcpy(rest, from + begin, (args.k - whole) / 32 * (Words::kBytes / 4));
        const std::byte* blocks = rest;
        forget_register(blocks);  // gcc warns of what is prefetched beyond
        multiply_blocks<kHasVnni, Words>(blocks, kWordElements, words, pitch, sums, scales, whole / kWordElements,
                                         totals);
      }
    }
    for (std::size_t t = 0; t < kTokens; ++t) {
      const float* const add = residual[row + t];
      out[row + t][r] = sum_of<Words>(totals[t]) + (add == nullptr ? 0 : add[r]);
    }
  }
}

// Computes the weight rows of `range` for all token rows.
template <DType kDType>
HWY_INLINE void multiply_words(const LinearArgs& args, const std::byte* weight, const WordsOfX& x,
                               const float* const* residual, float* const* out, Range range) {
  for_few_tokens(x.rows, [&]<std::size_t kTokens>(std::size_t t) {
#if HWY_TARGET == HWY_AVX3
    if (cpu_features().avx512_vnni)
      return multiply_word_rows<true, kDType, kTokens>(args, weight, x, t, residual, out, range);
#endif
    multiply_word_rows<false, kDType, kTokens>(args, weight, x, t, residual, out, range);
  });
}

// Calls use<dtype>() and returns true if weights of the dtype are multiplied in words.
template <class Use>
HWY_INLINE bool for_words_of(DType dtype, const Use& use) {
  return with_dtype(dtype, [&]<DType kDType>() {
    if constexpr (GroupBytes<kDType>::kElements != 0) {
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

#endif  // per-target include guard
