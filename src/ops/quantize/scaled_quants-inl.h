// Blocks of 256 elements whose quants are so small that times their group's scale they fit a byte: looked up in a table
// of each group, for AVX-512. Products are then summed over a whole block. Included once per instruction set; formats
// are in blocks.h.
//
// ScaledQuants<DType::X, whether the processor has GFNI>(from) reads the block at `from`:
//   kElements         256, in kBytes; 0: another dtype
//   kCentreBits       elements are scale() * (byte - 2^kCentreBits); 0: scale() * byte
//   kNegative         bytes and centre are of the elements' negatives
//   quants<kPart>()   of a part, 128 elements: the first 16 elements of each group of 32, and the others
//   kHasOffsets       whether offsets() are subtracted from the elements: of the 16 groups, in their order
#if defined(SHUNT_OPS_SCALED_QUANTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_SCALED_QUANTS_INL_H_
#undef SHUNT_OPS_SCALED_QUANTS_INL_H_
#else
#define SHUNT_OPS_SCALED_QUANTS_INL_H_
#endif

#include "ops/quantize/nibble_blocks-inl.h"

#if SHUNT_HAS_NIBBLE_BLOCKS
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

template <DType kDType, bool kHasGfni>
struct ScaledQuants {
  static constexpr std::size_t kElements = 0;
};

HWY_INLINE __m512i broadcast_16(const std::byte* from) { return _mm512_broadcast_i32x4(load_16(from)); }

// Converts an F16 and the three before it, of which it is the last lane.
HWY_INLINE __m128 load_f16_and_before(const std::byte* from) {
  return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from - 6)));
}
template <int kLane>
HWY_INLINE ProductVec broadcast_lane(__m128 lanes) {
  return {_mm512_permutexvar_ps(_mm512_set1_epi32(kLane), _mm512_castps128_ps512(lanes))};
}

// (x & mask) | with
HWY_INLINE __m512i mask_and_or(__m512i x, __m512i mask, __m512i with) {
  return _mm512_ternarylogic_epi32(x, mask, with, 0xEA);
}

// Sixteen bytes of pairs of bits, in each of four lanes: the lane's pair, and kWith above.
template <bool kHasGfni, int kWith>
HWY_INLINE __m512i spread_pairs(const std::byte* from) {
  __m512i pairs = broadcast_16(from);
  if constexpr (kHasGfni) {
    // Rows of a matrix, the highest byte first, choose the bits of the result from the lowest on.
    constexpr auto kPair = [](int lane) { return std::int64_t{0x0102} << 48 << 2 * lane; };
    const __m512i matrices =
        _mm512_setr_epi64(kPair(0), kPair(0), kPair(1), kPair(1), kPair(2), kPair(2), kPair(3), kPair(3));
    asm("vgf2p8affineqb %2, %1, %0, %0" : "+v"(pairs) : "v"(matrices), "i"(kWith));
    return pairs;
  } else {
    const __m512i counts = _mm512_setr_epi64(0, 0, 0x0002000200020002, 0x0002000200020002, 0x0004000400040004,
                                             0x0004000400040004, 0x0006000600060006, 0x0006000600060006);
    return mask_and_or(_mm512_srlv_epi16(pairs, counts), _mm512_set1_epi8(3), _mm512_set1_epi8(kWith));
  }
}

template <bool kHasGfni>
struct ScaledQuants<DType::Q2_K, kHasGfni> {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Q2_KBlock);
  static constexpr int kCentreBits = 0;
  static constexpr bool kNegative = false;
  static constexpr bool kHasOffsets = true;

  HWY_INLINE explicit ScaledQuants(const std::byte* from) : block_(from) {
    // A word's scale, times 0 and 1, or 2 and 3: lane l of vector 2 p + h has the elements of group 8 p + 2 l + h.
    constexpr auto kScales = [](std::uint64_t group) {
      return static_cast<std::int64_t>(0x8000800080008000 | group * 0x0001000100010001 | 0x0001000100000000);
    };
    const __m512i groups = _mm512_setr_epi64(kScales(0), kScales(8), kScales(2), kScales(10), kScales(4), kScales(12),
                                             kScales(6), kScales(14));
    const __m512i scales =
        _mm512_and_si512(broadcast_16(from + offsetof(Q2_KBlock, group_scales)), _mm512_set1_epi8(15));
    products_ = _mm512_mullo_epi16(_mm512_shuffle_epi8(scales, groups), _mm512_set1_epi32(0x03020100));
    static_assert(offsetof(Q2_KBlock, min) == offsetof(Q2_KBlock, scale) + 2);
    scale_and_min_ = load_f16_and_before(from + offsetof(Q2_KBlock, min));
  }
  [[nodiscard]] HWY_INLINE ProductVec scale() const { return broadcast_lane<2>(scale_and_min_); }
  [[nodiscard]] HWY_INLINE ProductVec offsets() const {
    const __m128i bytes = load_16(block_ + offsetof(Q2_KBlock, group_scales));
    const __m512i mins = _mm512_srli_epi32(_mm512_cvtepu8_epi32(bytes), 4);
    return hn::Mul(ProductVec{_mm512_cvtepi32_ps(mins)}, broadcast_lane<3>(scale_and_min_));
  }
  template <int kPart>
  [[nodiscard]] HWY_INLINE ByteHalves quants() const {
    const std::byte* const from = block_ + offsetof(Q2_KBlock, quants) + 32 * kPart;
    return {_mm512_shuffle_epi8(products_, spread_pairs<kHasGfni, 8 * kPart>(from)),
            _mm512_shuffle_epi8(products_, spread_pairs<kHasGfni, 8 * kPart + 4>(from + 16))};
  }

 private:
  const std::byte* block_;
  __m512i products_;  // byte 4 v + q of each lane: of q in the lane of vector v
  __m128 scale_and_min_;
};

template <bool kHasGfni>
struct ScaledQuants<DType::Q3_K, kHasGfni> {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Q3_KBlock);
  static constexpr int kCentreBits = 7;
  static constexpr bool kNegative = true;  // bytes are from 0 to 252
  static constexpr bool kHasOffsets = false;

  HWY_INLINE explicit ScaledQuants(const std::byte* from) : block_(from) {
    const std::array<std::uint64_t, 2> scales = Loader<DType::Q3_K>::group_scales(from);
    products_[0] = products(scales[0]);
    products_[1] = products(scales[1]);
  }
  [[nodiscard]] HWY_INLINE ProductVec scale() const {
    return broadcast_lane<3>(load_f16_and_before(block_ + offsetof(Q3_KBlock, scale)));
  }
  template <int kPart>
  [[nodiscard]] HWY_INLINE ByteHalves quants() const {
    return {look_up<kPart, 0>(), look_up<kPart, 1>()};
  }

 private:
  // Returns 128 - (s - 32) * (q - 4) for all q of eight groups, whose s are the bytes of `scales`. That is
  // (4 - q) * s + 32 * q, and always a byte, so words have it for two neighbouring q.
  static HWY_INLINE __m512i products(std::uint64_t scales) {
    constexpr auto kGroup = [](std::uint64_t group) {
      return static_cast<std::int64_t>(group * 0x0001000100010001 | 0x8000800080008000);
    };
    const __m512i groups =
        _mm512_setr_epi64(kGroup(0), kGroup(1), kGroup(2), kGroup(3), kGroup(4), kGroup(5), kGroup(6), kGroup(7));
    const __m512i words = _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<std::int64_t>(scales)), groups);
    constexpr auto kFactor = [](int q) { return static_cast<std::int16_t>(4 - q + 256 * (3 - q)); };
    const __m512i factors = _mm512_broadcast_i32x4(
        _mm_setr_epi16(kFactor(0), kFactor(2), kFactor(4), kFactor(6), kFactor(0), kFactor(2), kFactor(4), kFactor(6)));
    return _mm512_add_epi16(_mm512_mullo_epi16(words, factors),
                            _mm512_set1_epi64(static_cast<std::int64_t>(0xE0C0A08060402000)));
  }
  template <int kPart, int kHalf>
  [[nodiscard]] HWY_INLINE __m512i look_up() const {
    const std::byte* const from = block_ + offsetof(Q3_KBlock, quants) + 32 * kPart + 16 * kHalf;
    const __m512i low = spread_pairs<kHasGfni, 8 * kHalf>(from);
    const __m512i third = turn_third<kPart>(broadcast_16(block_ + offsetof(Q3_KBlock, high_bits) + 16 * kHalf));
    return _mm512_shuffle_epi8(products_[kPart], mask_and_or(third, _mm512_set1_epi8(4), low));
  }
  // Moves bit 4 kPart + l of each byte of lane l to bit 2. Other bits cross bytes.
  template <int kPart>
  static HWY_INLINE __m512i turn_third(__m512i bits) {
    constexpr auto kCount = [](std::int64_t lane) { return (4 * kPart + lane + 30) % 32 * 0x0000000100000001; };
    const __m512i counts =
        _mm512_setr_epi64(kCount(0), kCount(0), kCount(1), kCount(1), kCount(2), kCount(2), kCount(3), kCount(3));
    return _mm512_rorv_epi32(bits, counts);
  }

  const std::byte* block_;
  __m512i products_[2];  // of each part; byte 8 h + q of each lane: of q in the lane of half h
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_NIBBLE_BLOCKS

#endif  // per-target include guard
