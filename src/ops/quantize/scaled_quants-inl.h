// Blocks of 256 elements whose quants are so small that times their group's scale they fit a byte: looked up in tables
// of the groups, for AVX-512. Products are then summed over a whole block. Four rows are taken at a time, one in each
// lane of 128 bits, so that their sums are scaled together. Included once per instruction set; formats are in blocks.h.
//
// ScaledQuants<DType::X, whether the processor has GFNI>(from) reads the blocks at from[4]:
//   kElements               256, in kBytes; 0: another dtype
//   kCentreBits             elements are scales() * (byte - 2^kCentreBits); 0: scales() * byte
//   kNegative               bytes and centre are of the elements' negatives
//   quants<kPart, kHalf>()  the first or second 16 elements of each of the four groups of 32 in a part, 128 elements
//   scales()                four times each row's
//   kHasOffsets             whether mins() * offsets() is subtracted from the elements: offsets are bytes of the groups
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

// Bytes of each group of a part.
struct QuantsOfGroups {
  __m512i groups[4];
};

// (x & mask) | with
HWY_INLINE __m512i mask_and_or(__m512i x, __m512i mask, __m512i with) {
  return _mm512_ternarylogic_epi32(x, mask, with, 0xEA);
}

// Loads sixteen bytes of each row.
HWY_INLINE __m512i load_lanes(const std::byte* const (&from)[4], std::size_t at) {
  __m512i lanes = _mm512_castsi128_si512(load_16(from[0] + at));
  lanes = _mm512_mask_broadcast_i32x4(lanes, 0x00F0, load_16(from[1] + at));
  lanes = _mm512_mask_broadcast_i32x4(lanes, 0x0F00, load_16(from[2] + at));
  return _mm512_mask_broadcast_i32x4(lanes, 0xF000, load_16(from[3] + at));
}
HWY_INLINE __m512i in_each_lane(std::uint64_t low, std::uint64_t high) {
  return _mm512_broadcast_i32x4(_mm_set_epi64x(static_cast<std::int64_t>(high), static_cast<std::int64_t>(low)));
}
HWY_INLINE __m512i in_each_lane(std::uint64_t both) { return _mm512_set1_epi64(static_cast<std::int64_t>(both)); }

// A matrix that moves a bit of each byte.
constexpr std::uint64_t move_bit(int from, int to) { return std::uint64_t{1} << from << 8 * (7 - to); }
// Multiplies each byte by a matrix of bits and sets bits that are then zero. REQUIRES: GFNI.
template <int kWith>
HWY_INLINE __m512i move_bits(__m512i bytes, std::uint64_t matrix) {
  asm("vgf2p8affineqb %2, %1, %0, %0" : "+v"(bytes) : "v"(in_each_lane(matrix)), "i"(kWith));
  return bytes;
}

// Returns pair kPair of the bits of each byte, and kWith above.
template <bool kHasGfni, int kPair, int kWith>
HWY_INLINE __m512i pair_of_bits(__m512i bytes) {
  constexpr std::uint64_t kMatrix = move_bit(2 * kPair, 0) | move_bit(2 * kPair + 1, 1);
  if constexpr (kHasGfni && kPair != 0) return move_bits<kWith>(bytes, kMatrix);
  return mask_and_or(_mm512_srli_epi16(bytes, 2 * kPair), _mm512_set1_epi8(3), _mm512_set1_epi8(kWith));
}

template <bool kHasGfni>
struct ScaledQuants<DType::Q2_K, kHasGfni> {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Q2_KBlock);
  static constexpr int kCentreBits = 0;
  static constexpr bool kNegative = false;
  static constexpr bool kHasOffsets = true;

  HWY_INLINE explicit ScaledQuants(const std::byte* const (&from)[4]) : from_(from) {
    both_ = load_lanes(from, offsetof(Q2_KBlock, group_scales));
    scales_ = _mm512_and_si512(both_, _mm512_set1_epi8(15));
    static_assert(offsetof(Q2_KBlock, min) == offsetof(Q2_KBlock, scale) + 2);
    const auto row = [&](int r) { return read_as<std::int32_t>(from[r] + offsetof(Q2_KBlock, scale)); };
    // A scale and a min of each row.
    factors_ = _mm512_castps256_ps512(_mm256_cvtph_ps(_mm_setr_epi32(row(0), row(1), row(2), row(3))));
  }
  [[nodiscard]] HWY_INLINE ProductVec scales() const {
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
    return {_mm512_permutexvar_ps(lanes, factors_)};
  }
  [[nodiscard]] HWY_INLINE ProductVec mins() const {
    const __m512i lanes = _mm512_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7);
    return {_mm512_permutexvar_ps(lanes, factors_)};
  }
  [[nodiscard]] HWY_INLINE __m512i offsets() const {
    return _mm512_and_si512(_mm512_srli_epi16(both_, 4), _mm512_set1_epi8(15));
  }
  template <int kPart, int kHalf>
  [[nodiscard]] HWY_INLINE QuantsOfGroups quants() const {
    // Words have a group's scale, times 0 and 1, or 2 and 3: byte 4 g + q is that of q in group g.
    constexpr std::uint64_t kFirst = 8 * kPart + kHalf;
    constexpr std::uint64_t kTwo = 0x8002800280008000 + kFirst * 0x0001000100010001;
    const __m512i words = _mm512_shuffle_epi8(scales_, in_each_lane(kTwo, kTwo + 0x0004000400040004));
    const __m512i products = _mm512_mullo_epi16(words, _mm512_set1_epi32(0x03020100));
    const __m512i bits = load_lanes(from_, offsetof(Q2_KBlock, quants) + 32 * kPart + 16 * kHalf);
    return {{_mm512_shuffle_epi8(products, pair_of_bits<kHasGfni, 0, 0>(bits)),
             _mm512_shuffle_epi8(products, pair_of_bits<kHasGfni, 1, 4>(bits)),
             _mm512_shuffle_epi8(products, pair_of_bits<kHasGfni, 2, 8>(bits)),
             _mm512_shuffle_epi8(products, pair_of_bits<kHasGfni, 3, 12>(bits))}};
  }

 private:
  const std::byte* const (&from_)[4];
  __m512i both_;
  __m512i scales_;
  __m512 factors_;
};

template <bool kHasGfni>
struct ScaledQuants<DType::Q3_K, kHasGfni> {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Q3_KBlock);
  static constexpr int kCentreBits = 7;
  static constexpr bool kNegative = true;  // bytes are from 0 to 252
  static constexpr bool kHasOffsets = false;

  HWY_INLINE explicit ScaledQuants(const std::byte* const (&from)[4]) : from_(from) {
    thirds_[0] = load_lanes(from, offsetof(Q3_KBlock, high_bits));
    thirds_[1] = load_lanes(from, offsetof(Q3_KBlock, high_bits) + 16);
    // See q3_group_scale. Two bytes before the scales are loaded as well, so as to end with the block.
    const __m512i packed = load_lanes(from, offsetof(Q3_KBlock, group_scales) - 2);
    const __m512i nibbles = _mm512_shuffle_epi8(packed, in_each_lane(0x0908070605040302));
    const __m512i pairs = _mm512_shuffle_epi8(packed, in_each_lane(0x0D0C0B0A0D0C0B0A));
    const __m512i low = _mm512_srlv_epi64(nibbles, in_each_lane(0, 4));
    const __m512i high = _mm512_rorv_epi32(pairs, in_each_lane(30ULL << 32 | 28, 2ULL << 32));
    scales_ = mask_and_or(low, _mm512_set1_epi8(15), _mm512_and_si512(high, _mm512_set1_epi8(0x30)));
  }
  [[nodiscard]] HWY_INLINE ProductVec scales() const {
    std::uint64_t halves = 0;
    for (int r = 4; r-- > 0;) halves = halves << 16 | read_as<std::uint16_t>(from_[r] + offsetof(Q3_KBlock, scale));
    forget_register(halves);
    const __m128 scales = _mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<std::int64_t>(halves)));
    const __m512i lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return {_mm512_permutexvar_ps(lanes, _mm512_castps128_ps512(scales))};
  }
  template <int kPart, int kHalf>
  [[nodiscard]] HWY_INLINE QuantsOfGroups quants() const {
    const __m512i bits = load_lanes(from_, offsetof(Q3_KBlock, quants) + 32 * kPart + 16 * kHalf);
    const QuantsOfGroups at = indices<kPart>(bits, thirds_[kHalf]);
    const __m512i even = products(8 * kPart + kHalf);
    const __m512i odd = products(8 * kPart + kHalf + 2);
    return {{_mm512_shuffle_epi8(even, at.groups[0]), _mm512_shuffle_epi8(odd, at.groups[1]),
             _mm512_shuffle_epi8(even, at.groups[2]), _mm512_shuffle_epi8(odd, at.groups[3])}};
  }

 private:
  // Returns 128 - (s - 32) * (q - 4) for all q of a group, then of the fourth after it. That is (4 - q) * s + 32 * q,
  // and always a byte, so words have it for two neighbouring q.
  [[nodiscard]] HWY_INLINE __m512i products(std::uint64_t group) const {
    const std::uint64_t at = 0x8000800080008000 + group * 0x0001000100010001;
    const __m512i words = _mm512_shuffle_epi8(scales_, in_each_lane(at, at + 0x0004000400040004));
    constexpr auto kFactor = [](int q) { return static_cast<std::uint16_t>(4 - q + 256 * (3 - q)); };
    constexpr std::uint64_t kFactors = kFactor(0) | std::uint64_t{kFactor(2)} << 16 | std::uint64_t{kFactor(4)} << 32 |
                                       std::uint64_t{kFactor(6)} << 48;
    return _mm512_add_epi16(_mm512_mullo_epi16(words, in_each_lane(kFactors)), in_each_lane(0xE0C0A08060402000));
  }
  // Returns where products() has the quants of four groups: in its lower half those of the first two, in its upper half
  // those of the others.
  template <int kPart>
  static HWY_INLINE QuantsOfGroups indices(__m512i bits, __m512i thirds) {
    constexpr int kThird = 4 * kPart;
    if constexpr (kHasGfni) {
      // Nibbles of three bits. Look-ups ignore the upper one.
      const __m512i even_thirds = move_bits<0>(thirds, move_bit(kThird, 2) | move_bit(kThird + 2, 6));
      const __m512i odd_thirds = move_bits<0>(thirds, move_bit(kThird + 1, 2) | move_bit(kThird + 3, 6));
      const __m512i even = mask_and_or(bits, _mm512_set1_epi8(0x33), even_thirds);
      const __m512i odd = _mm512_or_si512(
          odd_thirds, move_bits<0>(bits, move_bit(2, 0) | move_bit(3, 1) | move_bit(6, 4) | move_bit(7, 5)));
      constexpr std::uint64_t kUpper = move_bit(4, 0) | move_bit(5, 1) | move_bit(6, 2);
      return {{even, odd, move_bits<8>(even, kUpper), move_bits<8>(odd, kUpper)}};
    }
    const auto join = [&]<int kGroup>() HWY_ATTR {
      const __m512i third = _mm512_ror_epi32(thirds, (kThird + kGroup + 30) % 32);
      const __m512i pair = pair_of_bits<false, kGroup, kGroup / 2 * 8>(bits);
      return mask_and_or(third, _mm512_set1_epi8(4), pair);
    };
    return {
      {join.template operator()<0>(), join.template operator()<1>(), join.template operator()<2>(),
       join.template operator()<3>()}
    };
  }

  const std::byte* const (&from_)[4];
  __m512i thirds_[2];
  __m512i scales_;
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_NIBBLE_BLOCKS

#endif  // per-target include guard
