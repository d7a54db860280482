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
#include "ops/kernel.h"
#include "ops/linear/few_tokens-inl.h"
#include "ops/linear/linear.h"
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

// Writes the digits of a sum, the lowest first, kGroupSums apart.
HWY_INLINE void write_digits(std::int32_t sum, std::int8_t* to) {
  for (std::size_t digit = 0; digit < SplitX::kDigits; ++digit) {
    const auto low = static_cast<std::int8_t>(sum & 0xFF);
    to[digit * SplitX::kGroupSums] = low;
    sum = (sum - low) / 256;
  }
}

// Rounds 256 elements of a token row, to the same integers as round_words().
static HWY_NOINLINE void round_split(const float* x, const SplitX& to, std::size_t row, std::size_t block) {
  const WordScale scale = word_scale(x);
  to.scales(row)[block] = scale.scale;
  const __m512 inverse = _mm512_set1_ps(scale.inverse);
  __m128i all = _mm_setzero_si128();
  for (std::size_t part = 2 * block; part < 2 * block + 2; ++part) {
    std::int8_t* const bytes = to.bytes(row, part);
    std::int32_t* const sums = to.sums(row) + part * SplitX::kSums;
    std::int8_t* digits = to.digits(row, block) + part % 2 * SplitX::kGroupSums / 2;
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
        write_digits(_mm512_reduce_add_epi32(integers), digits++);
      }
      sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
      sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
      const __m128i four = _mm512_castsi512_si128(_mm512_maskz_compress_epi32(0x1111, sum));
      _mm_store_si128(reinterpret_cast<__m128i*>(sums + 4 * group), four);
      all = _mm_add_epi32(all, four);
    }
  }
  _mm_store_si128(reinterpret_cast<__m128i*>(to.block_sums(row, block)), all);
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

// Adds the products of a weight row with kTokens token rows from `row` on.
template <class Blocks, std::size_t kTokens>
HWY_INLINE void multiply_split_row(const std::byte* from, const SplitX& x, std::size_t row, std::size_t k,
                                   ProductVec (&totals)[kTokens]) {
  const auto multiply_part = [&](const std::byte* blocks, std::size_t part) HWY_ATTR {
    const std::int8_t* bytes[kTokens];
    const std::int32_t* sums[kTokens];
    ProductVec scales[kTokens];
    for (std::size_t t = 0; t < kTokens; ++t) {
      bytes[t] = x.bytes(row + t, part);
      sums[t] = x.sums(row + t) + part * SplitX::kSums;
      scales[t] = hn::Set(ProductTag(), x.scales(row + t)[part / 2]);
    }
    multiply_split_part(Blocks(blocks), bytes, sums, scales, totals);
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

// Adds products with sixteen bytes, the same in each lane.
HWY_INLINE __m512i add_products_of_lanes(__m512i sums, __m512i weight, const std::int8_t* x) {
  const __m512i bytes = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(x)));
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weight), "v"(bytes));
  return sums;
}

// Adds the products of a block of 256 elements of four weight rows.
template <class Blocks, std::size_t kTokens>
HWY_INLINE void multiply_scaled_block(const std::byte* const (&from)[4], const SplitX& x, std::size_t row,
                                      std::size_t block, ProductVec (&totals)[kTokens]) {
  const ProductTag d;
  const Blocks weight(from);
  const std::int8_t* const bytes = x.bytes(row, 2 * block);  // the other rows' follow
  SplitSums products[kTokens];
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    products[t] = SplitSums::from(_mm512_setzero_si512());
    if constexpr (Blocks::kCentreBits == 0) continue;
    const auto* const sums = reinterpret_cast<const __m128i*>(x.block_sums(row + t, block));
    products[t].lower = _mm512_slli_epi32(_mm512_broadcast_i32x4(_mm_load_si128(sums)), Blocks::kCentreBits);
  }
  const auto add_groups = [&]<int kPart, int kHalf>() HWY_ATTR {
    const QuantsOfGroups quants = weight.template quants<kPart, kHalf>();
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
      const std::int8_t* const first = bytes + ((2 * t + kPart) * 2 + kHalf) * kWordElements;
      HWY_UNROLL(4) for (std::size_t g = 0; g < 4; ++g) {
        products[t].upper = add_products_of_lanes(products[t].upper, quants.groups[g], first + 16 * g);
        products[t].lower =
            add_products_of_lanes(products[t].lower, quants.groups[g], first + kWordElements / 2 + 16 * g);
      }
    }
  };
  add_groups.template operator()<0, 0>();
  add_groups.template operator()<0, 1>();
  add_groups.template operator()<1, 0>();
  add_groups.template operator()<1, 1>();
  const ProductVec scales = weight.scales();
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    const ProductVec x_scale = hn::Set(d, x.scales(row + t)[block]);
    const ProductVec factor = hn::Mul(scales, x_scale);
    totals[t] = Blocks::kNegative ? hn::NegMulAdd(products[t].total(), factor, totals[t])
                                  : hn::MulAdd(products[t].total(), factor, totals[t]);
    if constexpr (Blocks::kHasOffsets) {
      const std::int8_t* const digits = x.digits(row + t, block);
      __m512i sum = _mm512_setzero_si512();
      HWY_UNROLL(3)
      for (std::size_t digit = SplitX::kDigits; digit-- > 0;)
        sum = add_products_of_lanes(_mm512_slli_epi32(sum, 8), weight.offsets(), digits + digit * SplitX::kGroupSums);
      totals[t] = hn::NegMulAdd(hn::ConvertTo(d, ProductSums{sum}), hn::Mul(weight.mins(), x_scale), totals[t]);
    }
  }
}

// Computes the weight rows of `range` for kTokens token rows from `row` on. Quarters of them take turns.
template <class Blocks, std::size_t kTokens>
HWY_NOINLINE void multiply_scaled_rows(const LinearArgs& args, const std::byte* weight, const SplitX& x,
                                       std::size_t row, const float* const* residual, float* const* out, Range range) {
  const ProductTag d;
  const std::uint64_t count = range.end - range.begin;
  const std::uint64_t quarter = (count + 3) / 4;
  for (std::uint64_t i = 0; i < quarter; ++i) {
    // Rows past the last are the first once more, so that all are computed alike.
    const std::byte* from[4];
    HWY_UNROLL(4) for (std::uint64_t r = 0; r < 4; ++r) {
      const std::uint64_t at = i + r * quarter;
      from[r] = weight + (range.begin + (at < count ? at : i)) * args.weight_row_bytes;
      forget_register(from[r]);
    }
    ProductVec totals[kTokens];
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) totals[t] = hn::Zero(d);
    for (std::size_t block = 0; block < args.k / kWordBlock; ++block) {
      HWY_UNROLL(4) for (std::size_t r = 0; r < 4; ++r) prefetch(from[r], Blocks::kBytes);
      multiply_scaled_block<Blocks>(from, x, row, block, totals);
      HWY_UNROLL(4) for (std::size_t r = 0; r < 4; ++r) from[r] += Blocks::kBytes;
    }
    for (std::size_t t = 0; t < kTokens; ++t) {
      __m512 total = totals[t].raw;
      total = _mm512_add_ps(total, _mm512_permute_ps(total, 0x4E));
      total = _mm512_add_ps(total, _mm512_permute_ps(total, 0xB1));
      alignas(64) float lanes[16];
      _mm512_store_ps(lanes, total);
      const float* const add = residual[row + t];
      for (std::uint64_t r = 0; r < 4 && i + r * quarter < count; ++r) {
        const std::uint64_t at = range.begin + i + r * quarter;
        out[row + t][at] = lanes[4 * r] + (add == nullptr ? 0 : add[at]);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_NIBBLE_BLOCKS

#endif  // per-target include guard
