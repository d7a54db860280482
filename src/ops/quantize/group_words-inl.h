// Quants of quantized blocks as words in registers, for products with x in words. Included once per instruction set.
//
// GroupWords<DType::X>(from) reads the blocks at `from`, which hold kElements in kBytes:
//   words<kPart, kStep>()    kWordStep neighbours
//   scales(part)             of a part, 128 elements
//   scale<kStep>(scales)     for the sums of pairs of a step
//   kHasOffsets              false: elements are scale * word. true: words have a centre or offsets, as the bytes of
//                            group_bytes-inl.h do, and scales(part) is a ScaleVec
#if defined(SHUNT_OPS_GROUP_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_GROUP_WORDS_INL_H_
#undef SHUNT_OPS_GROUP_WORDS_INL_H_
#else
#define SHUNT_OPS_GROUP_WORDS_INL_H_
#endif

#include <array>

#include "ops/quantize/group_bytes-inl.h"

#if SHUNT_HAS_GROUP_BYTES
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using WordTag = hn::CappedTag<std::int16_t, 32>;
using WordVec = hn::Vec<WordTag>;
using ProductTag = hn::CappedTag<float, 16>;
using ProductVec = hn::Vec<ProductTag>;
using ProductSums = hn::Vec<hn::RebindToSigned<ProductTag>>;

// Neighbours of a row whose even elements fill a vector of words.
inline constexpr std::size_t kWordStep = 2 * hn::MaxLanes(WordTag());

struct WordPair {
  WordVec even;
  WordVec odd;
};

HWY_INLINE WordPair widen_bytes(hn::Vec<hn::Repartition<std::uint8_t, WordTag>> bytes) {
  const WordTag d16;
  const hn::RebindToUnsigned<WordTag> du16;
  const auto both = hn::BitCast(du16, bytes);
  return {hn::BitCast(d16, hn::And(both, hn::Set(du16, 255))), hn::BitCast(d16, hn::ShiftRight<8>(both))};
}

#if HWY_TARGET == HWY_AVX2
template <DType kDType>
struct GroupWords : GroupBytes<kDType> {
  static constexpr bool kHasOffsets = true;
  HWY_INLINE explicit GroupWords(const std::byte* from) : GroupBytes<kDType>(from) {}
  template <int kPart, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    return widen_bytes(this->template bytes<kPart, kStep>());
  }
  template <int kStep>
  [[nodiscard]] HWY_INLINE ProductVec scale(ScaleVec scales) const {
    return hn::Broadcast<kStep>(scales);
  }
};
#else

// Permutes scales of groups of 16, the even ones of which come first, for two groups of 32 from the first one on.
template <int kFirst>
HWY_INLINE ProductVec expand_scales(ScaleVec scales) {
  const __m512i lanes =
      _mm512_setr_epi32(kFirst, kFirst, kFirst, kFirst, kFirst + 4, kFirst + 4, kFirst + 4, kFirst + 4,  //
                        kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 1, kFirst + 5, kFirst + 5, kFirst + 5, kFirst + 5);
  return {_mm512_permutexvar_ps(lanes, _mm512_castps256_ps512(scales.raw))};
}

// Words of the dtype's bytes.
template <class Bytes>
struct WidenedGroups : Bytes {
  static constexpr bool kHasOffsets = true;
  HWY_INLINE explicit WidenedGroups(const std::byte* from) : Bytes(from) {}
  template <int kPart, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    const GroupVec low = this->template bytes<kPart, 2 * kStep>();
    const GroupVec high = this->template bytes<kPart, 2 * kStep + 1>();
    return widen_bytes({_mm512_inserti64x4(_mm512_castsi256_si512(low.raw), high.raw, 1)});
  }
  template <int kStep>
  [[nodiscard]] HWY_INLINE ProductVec scale(ScaleVec scales) const {
    return expand_scales<2 * kStep>(scales);
  }
};

template <DType kDType>
struct GroupWords : WidenedGroups<GroupBytes<kDType>> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : WidenedGroups<GroupBytes<kDType>>(from) {}
};

HWY_INLINE __m256i load_32(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
HWY_INLINE __m128i load_16(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

// 64 neighbours as nibbles, in the lowest four bits of words. The bits above them are of other elements.
struct NibbleWords {
  __m512i even;
  __m512i odd;

  // Loads two blocks of sixteen bytes: of each the low nibbles, then the high ones.
  static HWY_INLINE NibbleWords of_two_blocks(const std::byte* first, const std::byte* second) {
    const __m512i both = _mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(load_16(first)), 0xFF00, load_16(second));
    constexpr std::int64_t kLow = 0;
    constexpr std::int64_t kHigh = 0x0004000400040004;
    return shift(both, _mm512_setr_epi64(kLow, kLow, kHigh, kHigh, kLow, kLow, kHigh, kHigh));
  }
  // Loads 32 bytes: the low nibbles, then the high ones.
  static HWY_INLINE NibbleWords of_32_bytes(const std::byte* from) {
    constexpr std::int64_t kHigh = 0x0004000400040004;
    return shift(_mm512_broadcast_i64x4(load_32(from)), _mm512_setr_epi64(0, 0, 0, 0, kHigh, kHigh, kHigh, kHigh));
  }
  [[nodiscard]] HWY_INLINE WordPair values() const {
    const __m512i mask = _mm512_set1_epi16(15);
    return {{_mm512_and_si512(even, mask)}, {_mm512_and_si512(odd, mask)}};
  }
  // Returns the levels that they index.
  [[nodiscard]] HWY_INLINE WordPair levels(const std::int8_t (&table)[16]) const {
    // Five bits of a word are looked up, so that each level is there twice.
    const __m512i levels =
        _mm512_broadcast_i64x4(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))));
    return {{_mm512_permutexvar_epi16(even, levels)}, {_mm512_permutexvar_epi16(odd, levels)}};
  }

 private:
  static HWY_INLINE NibbleWords shift(__m512i bytes, __m512i counts) {
    const __m512i odd_counts = _mm512_add_epi16(counts, _mm512_set1_epi16(8));
    return {_mm512_srlv_epi16(bytes, counts), _mm512_srlv_epi16(bytes, odd_counts)};
  }
};

// The scales of four blocks, for the two steps of a part.
struct StepScales {
  ProductVec steps[2];
};

// The word at kOffset of four neighbouring blocks, eight times each. Reads nothing but the blocks.
template <class Block, std::size_t kOffset>
HWY_INLINE __m512i expand_words(const std::byte* blocks) {
  // Where a second vector begins, inside the blocks and after no gap.
  constexpr std::size_t kSecond = 4 * sizeof(Block) < 128 ? 4 * sizeof(Block) - 64 : 64;
  constexpr auto kIndex = [](std::size_t block) {
    const std::size_t at = block * sizeof(Block) + kOffset;
    return static_cast<std::int64_t>((at + 2 <= 64 ? at / 2 : 32 + (at - kSecond) / 2) * 0x0001000100010001);
  };
  const __m512i words =
      _mm512_setr_epi64(kIndex(0), kIndex(0), kIndex(1), kIndex(1), kIndex(2), kIndex(2), kIndex(3), kIndex(3));
  const __m512i first = _mm512_loadu_si512(blocks);
  if constexpr (3 * sizeof(Block) + kOffset + 2 <= 64) {
    return _mm512_permutexvar_epi16(words, first);
  } else {
    static_assert((3 * sizeof(Block) + kOffset - kSecond) % 2 == 0);
    return _mm512_permutex2var_epi16(first, words, _mm512_loadu_si512(blocks + kSecond));
  }
}

// Four blocks of 32 signed words.
template <class Block>
struct FourSignedBlocks {
  static constexpr std::size_t kElements = 128;
  static constexpr std::size_t kBytes = 4 * sizeof(Block);
  static constexpr bool kHasOffsets = false;

  HWY_INLINE explicit FourSignedBlocks(const std::byte* from) : blocks_(from) {}
  // REQUIRES: the scale is an F16.
  [[nodiscard]] HWY_INLINE StepScales scales(std::size_t) const {
    const __m512i halves = expand_words<Block, offsetof(Block, scale)>(blocks_);
    return {
        {{_mm512_cvtph_ps(_mm512_castsi512_si256(halves))}, {_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))}}};
  }
  template <int kStep>
  [[nodiscard]] HWY_INLINE ProductVec scale(const StepScales& scales) const {
    return scales.steps[kStep];
  }

 protected:
  template <int kBlock>
  [[nodiscard]] HWY_INLINE const std::byte* quants() const {
    return blocks_ + kBlock * sizeof(Block) + offsetof(Block, quants);
  }
  template <int kStep>
  [[nodiscard]] HWY_INLINE WordPair levels(const std::int8_t (&table)[16]) const {
    return NibbleWords::of_two_blocks(quants<2 * kStep>(), quants<2 * kStep + 1>()).levels(table);
  }
  const std::byte* blocks_;
};

template <>
struct GroupWords<DType::Q4_0> : FourSignedBlocks<Q4_0Block> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : FourSignedBlocks(from) {}
  template <int, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    static constexpr std::int8_t kValues[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return levels<kStep>(kValues);
  }
};

template <>
struct GroupWords<DType::IQ4_NL> : FourSignedBlocks<IQ4_NLBlock> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : FourSignedBlocks(from) {}
  template <int, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    return levels<kStep>(kCodebook);
  }
};

// Returns the scale of a block of MXFP4 in the lowest lane.
HWY_INLINE __m128 load_mx_scale(const std::byte* block) {
  static constexpr std::array<float, 256> kScales = [] {
    std::array<float, 256> scales{};
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = mx_scale(static_cast<std::uint8_t>(i));
    return scales;
  }();
  return _mm_load_ss(&kScales[read_as<std::uint8_t>(block + offsetof(MXFP4Block, exponent))]);
}

template <>
struct GroupWords<DType::MXFP4> : FourSignedBlocks<MXFP4Block> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : FourSignedBlocks(from) {}
  [[nodiscard]] HWY_INLINE StepScales scales(std::size_t) const { return {{two_scales<0>(), two_scales<2>()}}; }
  template <int, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    return levels<kStep>(kMxValues);
  }

 private:
  template <int kBlock>
  [[nodiscard]] HWY_INLINE __m128 block_scale() const {
    return load_mx_scale(blocks_ + kBlock * sizeof(MXFP4Block));
  }
  template <int kFirst>
  [[nodiscard]] HWY_INLINE ProductVec two_scales() const {
    return {
        _mm512_mask_broadcastss_ps(_mm512_broadcastss_ps(block_scale<kFirst>()), 0xFF00, block_scale<kFirst + 1>())};
  }
};

template <>
struct GroupWords<DType::Q8_0> : FourSignedBlocks<Q8_0Block> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : FourSignedBlocks(from) {}
  template <int, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    const __m512i low = _mm512_castsi256_si512(load_32(quants<2 * kStep>()));
    const __m512i both = _mm512_inserti64x4(low, load_32(quants<2 * kStep + 1>()), 1);
    return {{_mm512_srai_epi16(_mm512_slli_epi16(both, 8), 8)}, {_mm512_srai_epi16(both, 8)}};
  }
};

template <>
struct GroupWords<DType::Q4_K> : WidenedGroups<GroupBytes<DType::Q4_K>> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : WidenedGroups(from) {}
  template <int kPart, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    return NibbleWords::of_32_bytes(block_ + offsetof(Q4_KBlock, quants) + 64 * kPart + 32 * kStep).values();
  }
};

template <>
struct GroupWords<DType::IQ4_XS> : WidenedGroups<GroupBytes<DType::IQ4_XS>> {
  static constexpr bool kHasOffsets = false;
  HWY_INLINE explicit GroupWords(const std::byte* from) : WidenedGroups(from) {}
  template <int kPart, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    const std::byte* const quants = block_ + offsetof(IQ4_XSBlock, quants) + 64 * kPart + 32 * kStep;
    return NibbleWords::of_two_blocks(quants, quants + 16).levels(kCodebook);
  }
};

template <>
struct GroupWords<DType::Q6_K> : WidenedGroups<GroupBytes<DType::Q6_K>> {
  HWY_INLINE explicit GroupWords(const std::byte* from) : WidenedGroups(from) {}
  template <int kPart, int kStep>
  [[nodiscard]] HWY_INLINE WordPair words() const {
    const __m512i low = _mm512_loadu_si512(block_ + 64 * kPart);
    const __m512i high = _mm512_broadcast_i64x4(load_32(block_ + offsetof(Q6_KBlock, high_bits) + 32 * kPart));
    // Bits 4 and 5 of the bytes of two groups.
    const __m512i upper =
        kStep == 0 ? _mm512_sllv_epi16(high, in_halves(4, 2)) : _mm512_srlv_epi16(high, in_halves(0, 2));
    const __m512i lower = kStep == 0 ? low : _mm512_srli_epi16(low, 4);
    const __m512i both =
        _mm512_or_si512(_mm512_and_si512(lower, _mm512_set1_epi8(15)), _mm512_and_si512(upper, _mm512_set1_epi8(0x30)));
    return widen_bytes({both});
  }

 private:
  static HWY_INLINE __m512i in_halves(std::int16_t low, std::int16_t high) {
    return _mm512_inserti64x4(_mm512_set1_epi16(low), _mm256_set1_epi16(high), 1);
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_GROUP_BYTES

#endif  // per-target include guard
