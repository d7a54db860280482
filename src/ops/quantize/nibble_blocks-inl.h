// Blocks of 32 nibbles as unsigned bytes in registers, four blocks at a time, for AVX-512. Included once per
// instruction set; formats are in blocks.h.
//
// NibbleBlocks<DType::X>(from) reads the blocks at `from`, which hold kElements in kBytes:
//   kCentreBits   elements are scale * (byte - 2^kCentreBits)
//   quants()      the first 16 elements of each block, and the others
//   scales()      of each block four times
#if defined(SHUNT_OPS_NIBBLE_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_NIBBLE_BLOCKS_INL_H_
#undef SHUNT_OPS_NIBBLE_BLOCKS_INL_H_
#else
#define SHUNT_OPS_NIBBLE_BLOCKS_INL_H_
#endif

#include "ops/quantize/group_words-inl.h"

#undef SHUNT_HAS_NIBBLE_BLOCKS
#if HWY_TARGET == HWY_AVX3
#define SHUNT_HAS_NIBBLE_BLOCKS 1
#else
#define SHUNT_HAS_NIBBLE_BLOCKS 0
#endif

#if SHUNT_HAS_NIBBLE_BLOCKS
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// A dtype without nibbles.
template <DType kDType>
struct NibbleBlocks {
  static constexpr std::size_t kElements = 0;
};

// Bytes of 128 elements: of the first sixteen of each group of 32, and of the others.
struct ByteHalves {
  __m512i first;
  __m512i second;
};

template <class Block, int kBits>
struct FourNibbleBlocks {
  static constexpr std::size_t kElements = 128;
  static constexpr std::size_t kBytes = 4 * sizeof(Block);
  static constexpr int kCentreBits = kBits;

  HWY_INLINE explicit FourNibbleBlocks(const std::byte* from) : blocks_(from) {}
  [[nodiscard]] HWY_INLINE ByteHalves quants() const {
    __m512i both = _mm512_castsi128_si512(load_16(quants_of<0>()));
    both = _mm512_mask_broadcast_i32x4(both, 0x00F0, load_16(quants_of<1>()));
    both = _mm512_mask_broadcast_i32x4(both, 0x0F00, load_16(quants_of<2>()));
    both = _mm512_mask_broadcast_i32x4(both, 0xF000, load_16(quants_of<3>()));
    const __m512i mask = _mm512_set1_epi8(15);
    return {_mm512_and_si512(both, mask), _mm512_and_si512(_mm512_srli_epi16(both, 4), mask)};
  }
  // REQUIRES: the scale is an F16, and 64 bytes reach the last one.
  [[nodiscard]] HWY_INLINE ProductVec scales() const {
    static_assert(3 * sizeof(Block) + offsetof(Block, scale) + 2 <= 64);
    constexpr auto kIndex = [](std::size_t block) {
      return static_cast<std::int64_t>((block * sizeof(Block) + offsetof(Block, scale)) / 2 * 0x0001000100010001);
    };
    const __m512i halves = _mm512_setr_epi64(kIndex(0), kIndex(1), kIndex(2), kIndex(3), 0, 0, 0, 0);
    return {_mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(halves, _mm512_loadu_si512(blocks_))))};
  }

 protected:
  template <int kBlock>
  [[nodiscard]] HWY_INLINE const std::byte* quants_of() const {
    return blocks_ + kBlock * sizeof(Block) + offsetof(Block, quants);
  }
  // Returns the levels that nibbles index, with the centre added.
  [[nodiscard]] HWY_INLINE ByteHalves levels(const std::int8_t (&levels)[16]) const {
    const __m128i centred = _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)),
                                         _mm_set1_epi8(static_cast<char>(1U << kCentreBits)));
    const __m512i table = _mm512_broadcast_i32x4(centred);
    const ByteHalves nibbles = quants();
    return {_mm512_shuffle_epi8(table, nibbles.first), _mm512_shuffle_epi8(table, nibbles.second)};
  }
  const std::byte* blocks_;
};

template <>
struct NibbleBlocks<DType::Q4_0> : FourNibbleBlocks<Q4_0Block, 3> {
  HWY_INLINE explicit NibbleBlocks(const std::byte* from) : FourNibbleBlocks(from) {}
};

template <>
struct NibbleBlocks<DType::IQ4_NL> : FourNibbleBlocks<IQ4_NLBlock, 7> {
  HWY_INLINE explicit NibbleBlocks(const std::byte* from) : FourNibbleBlocks(from) {}
  [[nodiscard]] HWY_INLINE ByteHalves quants() const { return levels(kCodebook); }
};

template <>
struct NibbleBlocks<DType::MXFP4> : FourNibbleBlocks<MXFP4Block, 4> {
  HWY_INLINE explicit NibbleBlocks(const std::byte* from) : FourNibbleBlocks(from) {}
  [[nodiscard]] HWY_INLINE ByteHalves quants() const { return levels(kMxValues); }
  [[nodiscard]] HWY_INLINE ProductVec scales() const {
    __m512 scales = _mm512_broadcastss_ps(block_scale<0>());
    scales = _mm512_mask_broadcastss_ps(scales, 0x00F0, block_scale<1>());
    scales = _mm512_mask_broadcastss_ps(scales, 0x0F00, block_scale<2>());
    return {_mm512_mask_broadcastss_ps(scales, 0xF000, block_scale<3>())};
  }

 private:
  template <int kBlock>
  [[nodiscard]] HWY_INLINE __m128 block_scale() const {
    return load_mx_scale(blocks_ + kBlock * sizeof(MXFP4Block));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_NIBBLE_BLOCKS

#endif  // per-target include guard
