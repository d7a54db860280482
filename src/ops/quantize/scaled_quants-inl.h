// Blocks of 256 elements whose quants are so small that times their group's scale they fit a byte: looked up in a table
// of each group, for AVX-512. Products are then summed over a whole block. Included once per instruction set; formats
// are in blocks.h.
//
// ScaledQuants<DType::X>(from) reads the block at `from`:
//   kElements         256, in kBytes; 0: another dtype
//   kCentreBits       elements are scale() * (byte - 2^kCentreBits); 0: scale() * byte
//   quants<kPart>()   of a part, 128 elements: the first 16 elements of each group of 32, and the others
//   kHasOffsets       whether offsets() are added to the elements: of the 16 groups, in their order
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

template <DType kDType>
struct ScaledQuants {
  static constexpr std::size_t kElements = 0;
};

// Sixteen bytes of pairs of bits, in each of four lanes: the lane's pair in the lowest bits. Above are other bits.
HWY_INLINE __m512i spread_pairs(const std::byte* from) {
  const __m512i counts = _mm512_setr_epi64(0, 0, 0x0002000200020002, 0x0002000200020002, 0x0004000400040004,
                                           0x0004000400040004, 0x0006000600060006, 0x0006000600060006);
  return _mm512_srlv_epi16(_mm512_broadcast_i32x4(load_16(from)), counts);
}

// Returns an F16 in the lowest lane.
HWY_INLINE __m128 load_one_f16(const std::byte* from) {
  return _mm_cvtph_ps(_mm_cvtsi32_si128(read_as<std::uint16_t>(from)));
}

// (x & mask) | with
HWY_INLINE __m512i mask_and_or(__m512i x, __m512i mask, __m512i with) {
  return _mm512_ternarylogic_epi32(x, mask, with, 0xEA);
}

template <>
struct ScaledQuants<DType::Q2_K> {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Q2_KBlock);
  static constexpr int kCentreBits = 0;
  static constexpr bool kHasOffsets = true;

  HWY_INLINE explicit ScaledQuants(const std::byte* from) : block_(from) {
    // Orders scales by lane, then by vector: lane l of vector 2 p + h has the elements of group 8 p + 2 l + h.
    const __m128i in_lanes = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    const __m128i both = _mm_shuffle_epi8(load_16(from + offsetof(Q2_KBlock, group_scales)), in_lanes);
    const __m128i nibble = _mm_set1_epi8(15);
    const __m512i scales = _mm512_cvtepu8_epi32(_mm_and_si128(both, nibble));
    // 0, 1, 2 and 3 times each.
    const __m512i twice = _mm512_add_epi32(_mm512_slli_epi32(scales, 8), _mm512_slli_epi32(scales, 17));
    products_ = _mm512_add_epi32(twice, _mm512_add_epi32(_mm512_slli_epi32(scales, 24), _mm512_slli_epi32(scales, 25)));
  }
  [[nodiscard]] HWY_INLINE ProductVec scale() const {
    return {_mm512_broadcastss_ps(load_one_f16(block_ + offsetof(Q2_KBlock, scale)))};
  }
  [[nodiscard]] HWY_INLINE ProductVec offsets() const {
    const __m128i bytes = load_16(block_ + offsetof(Q2_KBlock, group_scales));
    const __m512i mins = _mm512_srli_epi32(_mm512_cvtepu8_epi32(bytes), 4);
    const __m512 min = _mm512_broadcastss_ps(load_one_f16(block_ + offsetof(Q2_KBlock, min)));
    return hn::Neg(ProductVec{_mm512_mul_ps(_mm512_cvtepi32_ps(mins), min)});
  }
  template <int kPart>
  [[nodiscard]] HWY_INLINE ByteHalves quants() const {
    const std::byte* const from = block_ + offsetof(Q2_KBlock, quants) + 32 * kPart;
    return {look_up<2 * kPart>(from), look_up<2 * kPart + 1>(from + 16)};
  }

 private:
  template <int kVector>
  [[nodiscard]] HWY_INLINE __m512i look_up(const std::byte* from) const {
    const __m512i at = mask_and_or(spread_pairs(from), _mm512_set1_epi8(3), _mm512_set1_epi8(4 * kVector));
    return _mm512_shuffle_epi8(products_, at);
  }
  const std::byte* block_;
  __m512i products_;  // byte 4 v + q of each lane: of q in the lane of vector v
};

template <>
struct ScaledQuants<DType::Q3_K> {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Q3_KBlock);
  static constexpr int kCentreBits = 7;
  static constexpr bool kHasOffsets = false;

  HWY_INLINE explicit ScaledQuants(const std::byte* from) : block_(from) {
    const std::array<std::uint64_t, 2> packed = Loader<DType::Q3_K>::group_scales(from);
    const __m128i bytes = _mm_set_epi64x(static_cast<std::int64_t>(packed[1]), static_cast<std::int64_t>(packed[0]));
    const __m512i scales = _mm512_castsi256_si512(_mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16(32)));
    products_[0] = _mm512_packus_epi16(products<0>(scales), products<1>(scales));
    products_[1] = _mm512_packus_epi16(products<8>(scales), products<9>(scales));
  }
  // Bytes are from 0 to 252, because they are of the elements' negatives.
  [[nodiscard]] HWY_INLINE ProductVec scale() const {
    return hn::Neg(ProductVec{_mm512_broadcastss_ps(load_one_f16(block_ + offsetof(Q3_KBlock, scale)))});
  }
  template <int kPart>
  [[nodiscard]] HWY_INLINE ByteHalves quants() const {
    return {look_up<kPart, 0>(), look_up<kPart, 1>()};
  }

 private:
  // Returns 128 - scale * (q - 4) for all q, as words, of a group in each lane: the first, and every second after it.
  template <std::int64_t kFirst>
  static HWY_INLINE __m512i products(__m512i scales) {
    constexpr auto kGroup = [](std::int64_t lane) { return (kFirst + 2 * lane) * 0x0001000100010001; };
    const __m512i groups =
        _mm512_setr_epi64(kGroup(0), kGroup(0), kGroup(1), kGroup(1), kGroup(2), kGroup(2), kGroup(3), kGroup(3));
    const __m512i factors = _mm512_broadcast_i32x4(_mm_setr_epi16(4, 3, 2, 1, 0, -1, -2, -3));
    return _mm512_add_epi16(_mm512_mullo_epi16(_mm512_permutexvar_epi16(groups, scales), factors),
                            _mm512_set1_epi16(128));
  }
  template <int kPart, int kHalf>
  [[nodiscard]] HWY_INLINE __m512i look_up() const {
    const __m512i low = spread_pairs(block_ + offsetof(Q3_KBlock, quants) + 32 * kPart + 16 * kHalf);
    const __m512i third =
        shift_third<kPart>(_mm512_broadcast_i32x4(load_16(block_ + offsetof(Q3_KBlock, high_bits) + 16 * kHalf)));
    const __m512i at = mask_and_or(low, _mm512_set1_epi8(3), _mm512_set1_epi8(8 * kHalf));
    return _mm512_shuffle_epi8(products_[kPart], mask_and_or(third, _mm512_set1_epi8(4), at));
  }
  // Moves bit 4 kPart + l of each byte of lane l to bit 2.
  template <int kPart>
  static HWY_INLINE __m512i shift_third(__m512i bits) {
    const __m512i lanes = _mm512_setr_epi64(0, 0, 0x0001000100010001, 0x0001000100010001, 0x0002000200020002,
                                            0x0002000200020002, 0x0003000300030003, 0x0003000300030003);
    return kPart == 0 ? _mm512_srlv_epi16(_mm512_slli_epi16(bits, 2), lanes)
                      : _mm512_srlv_epi16(bits, _mm512_add_epi16(lanes, _mm512_set1_epi16(2)));
  }

  const std::byte* block_;
  __m512i products_[2];  // of each part; byte 8 h + q of each lane: of q in the lane of half h
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_NIBBLE_BLOCKS

#endif  // per-target include guard
