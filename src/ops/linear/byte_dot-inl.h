// Sums of products of bytes, four neighbours of a row in each lane of 32 bits. Included once per instruction set.
//
// A dot has
//   Strip                        the form of the weight
//   Sum                          what it sums in
//   kFours                       how many times four products it adds at once
//   kTokens                      token rows of a tile, for whose sums there are registers
//   steps<kMost, kGroup>()       how many times four products fit the sum if no byte of the weight exceeds kMost, at
//                                most a group of them; 0: too few to be faster than another dot
//   begin(start), add(sum, w, x), end<no start>(sum, start)   give start + sum of w x in lanes of 32 bits
#if defined(SHUNT_OPS_BYTE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BYTE_DOT_INL_H_
#undef SHUNT_OPS_BYTE_DOT_INL_H_
#else
#define SHUNT_OPS_BYTE_DOT_INL_H_
#endif

#include "base/system/cpu_features.h"
#include "ops/linear/byte_blocking.h"
#include "ops/quantize/block_vectors-inl.h"

#undef SHUNT_HAS_BYTE_DOT
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#define SHUNT_HAS_BYTE_DOT 1
#else
#define SHUNT_HAS_BYTE_DOT 0
#endif

#if SHUNT_HAS_BYTE_DOT
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using LaneSums = hn::Vec<hn::RebindToSigned<BlockTag>>;
using WeightBytes = hn::Vec<hn::Repartition<std::uint8_t, BlockTag>>;

inline constexpr std::size_t kByteStripRows = 2 * kBlockLanes;
static_assert(kByteBlockRows % kByteStripRows == 0);

// Weight rows side by side.
struct ByteStrip {
  alignas(64) std::uint8_t bytes[kByteElements / 4][kByteStripRows][4];
  alignas(64) float scales[kByteElements / 16][kByteStripRows];
  alignas(64) float offsets[kByteElements / 16][kByteStripRows];

  // Stores four bytes of kBlockLanes rows.
  HWY_INLINE void put(std::size_t four, std::size_t first, WeightBytes v) {
    hn::Store(v, hn::Repartition<std::uint8_t, BlockTag>(), bytes[four][first]);
  }
  // Stores scale and offset of a row's group.
  HWY_INLINE void put_scale(std::size_t group, std::size_t row, float scale, float offset) {
    scales[group][row] = scale;
    offsets[group][row] = offset;
  }
};

#if HWY_ARCH_X86
using PairSums = hn::Vec<hn::Repartition<std::int16_t, BlockTag>>;

// Returns the sums of two neighbouring products in lanes of 16 bits.
HWY_INLINE PairSums multiply_pairs(WeightBytes w, LaneSums x) {
#if HWY_TARGET == HWY_AVX3
  return {_mm512_maddubs_epi16(w.raw, x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return {_mm256_maddubs_epi16(w.raw, x.raw)};
#else
  return {_mm_maddubs_epi16(w.raw, x.raw)};
#endif
}

// Returns the sums of two neighbours.
HWY_INLINE LaneSums widen_pairs(PairSums sums) {
#if HWY_TARGET == HWY_AVX3
  return {_mm512_madd_epi16(sums.raw, _mm512_set1_epi16(1))};
#elif HWY_TARGET == HWY_AVX2
  return {_mm256_madd_epi16(sums.raw, _mm256_set1_epi16(1))};
#else
  return {_mm_madd_epi16(sums.raw, _mm_set1_epi16(1))};
#endif
}

// Keeps gcc from multiplying all of a group before it adds, for which there are not enough registers.
template <class Vec>
HWY_INLINE void add_now(Vec& sum) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(sum.raw));
#else
  asm("" : "+x"(sum.raw));
#endif
}

// Sums pairs of products in 16 bits, as long as they fit.
struct PairsDot {
  using Strip = ByteStrip;
  using Sum = PairSums;
  static constexpr std::size_t kFours = 1;
  static constexpr std::size_t kTokens = 6;

  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    constexpr std::size_t kFit = 32767 / (kMost * 127 * 2);
    std::size_t steps = kGroup / 4;
    while (steps > kFit) steps /= 2;
    return steps < 4 ? 0 : steps;
  }
  static HWY_INLINE Sum begin(std::int32_t) { return hn::Zero(hn::Repartition<std::int16_t, BlockTag>()); }
  static HWY_INLINE Sum add(Sum sum, const WeightBytes (&w)[1], const LaneSums (&x)[1]) {
    sum = hn::Add(sum, multiply_pairs(w[0], x[0]));
    add_now(sum);
    return sum;
  }
  template <bool kNoStart>
  static HWY_INLINE LaneSums end(Sum sum, std::int32_t start) {
    const LaneSums wide = widen_pairs(sum);
    return kNoStart ? wide : hn::Add(wide, hn::Set(hn::RebindToSigned<BlockTag>(), start));
  }
};

// Sums two pairs of products in 16 bits, and these sums in 32: for bytes too large for PairsDot.
struct EightsDot {
  using Strip = ByteStrip;
  using Sum = LaneSums;
  static constexpr std::size_t kFours = 2;
  static constexpr std::size_t kTokens = 4;

  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    return kMost * 127 * 4 <= 32767 ? kGroup / 4 : 0;
  }
  static HWY_INLINE Sum begin(std::int32_t start) { return hn::Set(hn::RebindToSigned<BlockTag>(), start); }
  static HWY_INLINE Sum add(Sum sum, const WeightBytes (&w)[2], const LaneSums (&x)[2]) {
    sum = hn::Add(sum, widen_pairs(hn::Add(multiply_pairs(w[0], x[0]), multiply_pairs(w[1], x[1]))));
    add_now(sum);
    return sum;
  }
  template <bool kNoStart>
  static HWY_INLINE LaneSums end(Sum sum, std::int32_t) {
    return sum;
  }
};

#endif  // HWY_ARCH_X86

// Sums four products in 32 bits (vpdpbusd; sdot, whose bytes are signed). Written in assembly because Highway compiles
// this pass without these instructions.
struct FoursDot {
  using Strip = ByteStrip;
  using Sum = LaneSums;
  static constexpr std::size_t kFours = 1;
  static constexpr std::size_t kTokens = 6;

  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    return HWY_ARCH_X86 || kMost <= 127 ? kGroup / 4 : 0;
  }
  static HWY_INLINE Sum begin(std::int32_t start) { return hn::Set(hn::RebindToSigned<BlockTag>(), start); }
  static HWY_INLINE Sum add(Sum sum, const WeightBytes (&w)[1], const LaneSums (&x)[1]) {
#if HWY_TARGET == HWY_AVX3
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w[0].raw), "v"(x[0].raw));
#elif HWY_TARGET == HWY_AVX2
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(w[0].raw), "x"(x[0].raw));
#elif HWY_TARGET == HWY_NEON
    asm(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(w[0].raw), "w"(x[0].raw));
#else
    static_cast<void>(w);
    static_cast<void>(x);
#endif
    return sum;
  }
  template <bool kNoStart>
  static HWY_INLINE LaneSums end(Sum sum, std::int32_t) {
    return sum;
  }
};

#if HWY_TARGET == HWY_NEON
// The same for bytes of more than 127, which all have the centre 128: subtracting it makes them signed, and leaves
// nothing to start from.
struct CentredDot : FoursDot {
  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    return kMost > 127 ? kGroup / 4 : 0;
  }
  static HWY_INLINE Sum begin(std::int32_t) { return hn::Zero(hn::RebindToSigned<BlockTag>()); }
  static HWY_INLINE Sum add(Sum sum, const WeightBytes (&w)[1], const LaneSums (&x)[1]) {
    const WeightBytes centred[1] = {hn::Xor(w[0], hn::Set(hn::Repartition<std::uint8_t, BlockTag>(), 128))};
    return FoursDot::add(sum, centred, x);
  }
};
#endif

// Returns whether this processor has FoursDot's instruction.
HWY_INLINE bool multiplies_fours() {
#if HWY_TARGET == HWY_AVX3
  return cpu_features().avx512_vnni;
#elif HWY_TARGET == HWY_AVX2
  return cpu_features().avx_vnni;
#elif HWY_TARGET == HWY_NEON
  return cpu_features().arm_dot_products;
#else
  return false;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_BYTE_DOT

#endif  // per-target include guard
