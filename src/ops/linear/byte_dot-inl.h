// Sums of products of bytes, four neighbours of a row in each lane of 32 bits. Included once per instruction set.
//
// A dot has
//   Sum                          what it sums in
//   steps<kMost, kGroup>()       how many additions of four products fit it if no byte of the weight exceeds kMost, at
//                                most a group of them; 0: too few to be faster than F32
//   weights(from)                four bytes of kBlockLanes rows of the weight
//   begin(start), add(sum, w, x), end<no start>(sum, start)   give start + sum of w x in lanes of 32 bits
#if defined(SHUNT_OPS_BYTE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BYTE_DOT_INL_H_
#undef SHUNT_OPS_BYTE_DOT_INL_H_
#else
#define SHUNT_OPS_BYTE_DOT_INL_H_
#endif

#include "base/system/cpu_features.h"
#include "ops/quantize/block_vectors-inl.h"

#undef SHUNT_HAS_BYTE_DOT
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
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

HWY_INLINE WeightBytes load_weights(const std::uint8_t* from) {
  return hn::Load(hn::Repartition<std::uint8_t, BlockTag>(), from);
}

// Sums pairs of products in 16 bits (vpmaddubsw), as long as they fit. The empty assembly keeps gcc from multiplying
// all of a group before it adds, for which there are not enough registers.
struct PairsDot {
  using Sum = hn::Vec<hn::Repartition<std::int16_t, BlockTag>>;

  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    constexpr std::size_t kFit = 32767 / (kMost * 127 * 2);
    std::size_t steps = kGroup / 4;
    while (steps > kFit) steps /= 2;
    return steps < 4 ? 0 : steps;
  }
  static HWY_INLINE WeightBytes weights(const std::uint8_t* from) { return load_weights(from); }
  static HWY_INLINE Sum begin(std::int32_t) { return hn::Zero(hn::Repartition<std::int16_t, BlockTag>()); }
  static HWY_INLINE Sum add(Sum sum, WeightBytes w, LaneSums x) {
#if HWY_TARGET == HWY_AVX3
    sum.raw = _mm512_add_epi16(sum.raw, _mm512_maddubs_epi16(w.raw, x.raw));
    asm("" : "+v"(sum.raw));
#elif HWY_TARGET == HWY_AVX2
    sum.raw = _mm256_add_epi16(sum.raw, _mm256_maddubs_epi16(w.raw, x.raw));
    asm("" : "+x"(sum.raw));
#else
    sum.raw = _mm_add_epi16(sum.raw, _mm_maddubs_epi16(w.raw, x.raw));
    asm("" : "+x"(sum.raw));
#endif
    return sum;
  }
  template <bool kNoStart>
  static HWY_INLINE LaneSums end(Sum sum, std::int32_t start) {
    const hn::RebindToSigned<BlockTag> di;
#if HWY_TARGET == HWY_AVX3
    const LaneSums wide{_mm512_madd_epi16(sum.raw, _mm512_set1_epi16(1))};
#elif HWY_TARGET == HWY_AVX2
    const LaneSums wide{_mm256_madd_epi16(sum.raw, _mm256_set1_epi16(1))};
#else
    const LaneSums wide{_mm_madd_epi16(sum.raw, _mm_set1_epi16(1))};
#endif
    return kNoStart ? wide : hn::Add(wide, hn::Set(di, start));
  }
};

// Sums four products in 32 bits (vpdpbusd). Written in assembly because Highway compiles this pass without VNNI.
struct FoursDot {
  using Sum = LaneSums;

  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    return kGroup / 4;
  }
  static HWY_INLINE WeightBytes weights(const std::uint8_t* from) { return load_weights(from); }
  static HWY_INLINE Sum begin(std::int32_t start) { return hn::Set(hn::RebindToSigned<BlockTag>(), start); }
  static HWY_INLINE Sum add(Sum sum, WeightBytes w, LaneSums x) {
#if HWY_TARGET == HWY_AVX3
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
#elif HWY_TARGET == HWY_AVX2
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(w.raw), "x"(x.raw));
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

// Returns whether this processor has FoursDot's instruction.
HWY_INLINE bool multiplies_fours() {
#if HWY_TARGET == HWY_AVX3
  return cpu_features().avx512_vnni;
#elif HWY_TARGET == HWY_AVX2
  return cpu_features().avx_vnni;
#else
  return false;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_BYTE_DOT

#endif  // per-target include guard
