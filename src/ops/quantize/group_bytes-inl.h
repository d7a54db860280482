// Quants of quantized blocks as unsigned bytes in registers, 128 elements at a time, for products of integers. Included
// once per instruction set; formats are in blocks.h. block_bytes-inl.h unpacks them to memory.
//
// GroupBytes<DType::X>(from) reads the blocks at `from`, which hold kElements:
//   kCentre    elements are scale * (byte - kCentre); 0: they are scale * byte + offset
//   scales(part), offsets(part)   of the eight groups of 16 of a part, 128 elements, even groups first
//   bytes<kPart, kGroup>()        32 neighbours
#if defined(SHUNT_OPS_GROUP_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_GROUP_BYTES_INL_H_
#undef SHUNT_OPS_GROUP_BYTES_INL_H_
#else
#define SHUNT_OPS_GROUP_BYTES_INL_H_
#endif

#include "ops/quantize/blocks_simd-inl.h"

#undef SHUNT_HAS_GROUP_BYTES
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#define SHUNT_HAS_GROUP_BYTES 1
#else
#define SHUNT_HAS_GROUP_BYTES 0
#endif

#if SHUNT_HAS_GROUP_BYTES
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using GroupTag = hn::FixedTag<std::uint8_t, 32>;
using GroupVec = hn::Vec<GroupTag>;
using ScaleTag = hn::FixedTag<float, 8>;
using ScaleVec = hn::Vec<ScaleTag>;

// A dtype without integers.
template <DType kDType>
struct GroupBytes {
  static constexpr std::size_t kElements = 0;
};

template <int kBits>
HWY_INLINE GroupVec shift_right(GroupVec v) {
  const hn::Repartition<std::uint16_t, GroupTag> d16;  // no target shifts bytes
  if constexpr (kBits == 0) return v;
  return hn::BitCast(GroupTag(), hn::ShiftRight<kBits>(hn::BitCast(d16, v)));
}
template <int kBits>
HWY_INLINE GroupVec shift_left(GroupVec v) {
  const hn::Repartition<std::uint16_t, GroupTag> d16;
  if constexpr (kBits == 0) return v;
  return hn::BitCast(GroupTag(), hn::ShiftLeft<kBits>(hn::BitCast(d16, v)));
}
HWY_INLINE GroupVec mask_bits(GroupVec v, std::uint8_t bits) { return hn::And(v, hn::Set(GroupTag(), bits)); }
HWY_INLINE GroupVec load_group(const std::byte* from) {
  return hn::LoadU(GroupTag(), reinterpret_cast<const std::uint8_t*>(from));
}

// The low nibbles of sixteen bytes, then the high ones.
HWY_INLINE GroupVec load_nibble_group(const std::byte* from) {
  const hn::Half<GroupTag> half;
  const hn::Repartition<std::uint16_t, decltype(half)> d16;
  const auto both = hn::LoadU(half, reinterpret_cast<const std::uint8_t*>(from));
  const auto high = hn::BitCast(half, hn::ShiftRight<4>(hn::BitCast(d16, both)));
  return mask_bits(hn::Combine(GroupTag(), high, both), 15);
}

// The same with `centre` added to the level that each nibble stands for, which leaves none negative.
HWY_INLINE GroupVec load_level_group(const std::byte* from, const std::int8_t (&levels)[16], int centre) {
  const GroupTag d8;
  const auto table = hn::Add(hn::LoadDup128(d8, reinterpret_cast<const std::uint8_t*>(levels)),
                             hn::Set(d8, static_cast<std::uint8_t>(centre)));
  return hn::TableLookupBytes(table, load_nibble_group(from));
}

// Returns 16 in the bytes whose bit is set.
HWY_INLINE GroupVec load_fifth_bits(const std::byte* from) {
  const GroupTag d8;
  alignas(32) static constexpr std::uint8_t kByteOf[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                           2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const hn::Repartition<std::uint32_t, GroupTag> d32;
  const hn::Repartition<std::uint64_t, GroupTag> d64;
  const auto word = hn::BitCast(d8, hn::Set(d32, read_as<std::uint32_t>(from)));
  const auto bit = hn::BitCast(d8, hn::Set(d64, 0x8040201008040201U));
  const auto spread = hn::TableLookupBytes(word, hn::Load(d8, kByteOf));
  return hn::IfThenElseZero(hn::TestBit(spread, bit), hn::Set(d8, 16));
}

// Four blocks of 32 elements with a scale each.
template <class Block, int kCentreByte>
struct FourBlocks {
  static constexpr std::size_t kElements = 128;
  static constexpr std::size_t kBytes = 4 * sizeof(Block);
  static constexpr int kCentre = kCentreByte;

  HWY_INLINE explicit FourBlocks(const std::byte* from) : blocks_(from) {}
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t) const { return four(0); }
  [[nodiscard]] HWY_INLINE ScaleVec offsets(std::size_t) const { return four(2); }

 protected:
  template <int kGroup>
  [[nodiscard]] HWY_INLINE const std::byte* quants() const {
    return blocks_ + kGroup * sizeof(Block) + offsetof(Block, quants);
  }
  [[nodiscard]] HWY_INLINE ScaleVec four(std::size_t offset) const {
    const FourScales scales(blocks_ + offset, sizeof(Block));
    return hn::LoadDup128(ScaleTag(), scales.values);
  }
  const std::byte* blocks_;
};

template <>
struct GroupBytes<DType::Q4_0> : FourBlocks<Q4_0Block, 8> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return load_nibble_group(quants<kGroup>());
  }
};

template <>
struct GroupBytes<DType::Q4_1> : FourBlocks<Q4_1Block, 0> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return load_nibble_group(quants<kGroup>());
  }
};

template <>
struct GroupBytes<DType::Q5_0> : FourBlocks<Q5_0Block, 16> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return hn::Or(load_nibble_group(quants<kGroup>()), load_fifth_bits(quants<kGroup>() - 4));
  }
};

template <>
struct GroupBytes<DType::Q5_1> : FourBlocks<Q5_1Block, 0> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return hn::Or(load_nibble_group(quants<kGroup>()), load_fifth_bits(quants<kGroup>() - 4));
  }
};

template <>
struct GroupBytes<DType::Q8_0> : FourBlocks<Q8_0Block, 128> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return hn::Xor(load_group(quants<kGroup>()), hn::Set(GroupTag(), 128));
  }
};

template <>
struct GroupBytes<DType::IQ4_NL> : FourBlocks<IQ4_NLBlock, 128> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return load_level_group(quants<kGroup>(), kCodebook, kCentre);
  }
};

template <>
struct GroupBytes<DType::MXFP4> : FourBlocks<MXFP4Block, 12> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : FourBlocks(from) {}
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t) const {
    const hn::Repartition<std::int32_t, ScaleTag> d32;
    alignas(16) std::int32_t exponents[4];
    for (std::size_t b = 0; b < 4; ++b) exponents[b] = read_as<std::uint8_t>(blocks_ + b * sizeof(MXFP4Block));
    forget_memory(exponents);
    const auto exponent = hn::LoadDup128(d32, exponents);
    const auto normal = hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(d32, 1)));
    const auto subnormal = hn::ShiftLeft<21>(hn::Add(exponent, hn::Set(d32, 1)));  // see mx_scale
    return hn::BitCast(ScaleTag(), hn::IfThenElse(hn::Gt(exponent, hn::Set(d32, 1)), normal, subnormal));
  }
  template <int, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return load_level_group(quants<kGroup>(), kMxValues, kCentre);
  }
};

// A block of 256 elements.
template <class Block, int kCentreByte>
struct SuperBlock {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Block);
  static constexpr int kCentre = kCentreByte;
};

template <>
struct GroupBytes<DType::Q4_K> : SuperBlock<Q4_KBlock, 0> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : block_(from), k_(from) {}
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t part) const {
    return hn::LoadDup128(ScaleTag(), k_.scales + 4 * part);
  }
  [[nodiscard]] HWY_INLINE ScaleVec offsets(std::size_t part) const {
    return hn::LoadDup128(ScaleTag(), k_.offsets + 4 * part);
  }
  template <int kPart, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    const GroupVec both = load_group(block_ + offsetof(Q4_KBlock, quants) + 64 * kPart + kGroup / 2 * 32);
    return mask_bits(shift_right<kGroup % 2 * 4>(both), 15);
  }

 protected:
  const std::byte* block_;

 private:
  KScales k_;
};

template <>
struct GroupBytes<DType::Q5_K> : SuperBlock<Q5_KBlock, 0> {
  HWY_INLINE explicit GroupBytes(const std::byte* from)
      : block_(from), k_(from), high_(load_group(from + offsetof(Q5_KBlock, high_bits))) {}
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t part) const {
    return hn::LoadDup128(ScaleTag(), k_.scales + 4 * part);
  }
  [[nodiscard]] HWY_INLINE ScaleVec offsets(std::size_t part) const {
    return hn::LoadDup128(ScaleTag(), k_.offsets + 4 * part);
  }
  template <int kPart, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    constexpr int kBit = 4 * kPart + kGroup;
    const GroupVec both = load_group(block_ + offsetof(Q5_KBlock, quants) + 64 * kPart + kGroup / 2 * 32);
    const GroupVec low = mask_bits(shift_right<kGroup % 2 * 4>(both), 15);
    return hn::Or(low, mask_bits(kBit < 4 ? shift_left < kBit<4 ? 4 - kBit : 0>(high_)
                                          : shift_right < kBit<4 ? 0 : kBit - 4>(high_),
                                 16));
  }

 private:
  const std::byte* block_;
  KScales k_;
  GroupVec high_;
};

// The scales of eight groups of 16 from bytes; the even ones come first.
HWY_INLINE hn::Vec<hn::FixedTag<std::uint8_t, 16>> even_bytes_first(hn::Vec<hn::FixedTag<std::uint8_t, 16>> bytes) {
  const hn::FixedTag<std::uint8_t, 16> d8;
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
  return hn::TableLookupBytes(bytes, hn::Load(d8, kOrder));
}
template <class T>
HWY_INLINE ScaleVec eight_bytes(const T* from) {
  return hn::ConvertTo(ScaleTag(), load_bytes<T>(ScaleTag(), from));
}

template <>
struct GroupBytes<DType::Q6_K> : SuperBlock<Q6_KBlock, 32> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : block_(from) {
    const hn::FixedTag<std::uint8_t, 16> d8;
    const auto* groups = reinterpret_cast<const std::uint8_t*>(from) + offsetof(Q6_KBlock, group_scales);
    hn::Store(even_bytes_first(hn::LoadU(d8, groups)), d8, reinterpret_cast<std::uint8_t*>(scales_));
    forget_memory(scales_);
  }
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t part) const {
    const float scale = f16_to_f32(read_as<std::uint16_t>(block_ + offsetof(Q6_KBlock, scale)));
    return hn::Mul(eight_bytes(scales_ + 8 * part), hn::Set(ScaleTag(), scale));
  }
  template <int kPart, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    const GroupVec low = load_group(block_ + 64 * kPart + kGroup % 2 * 32);
    const GroupVec high = load_group(block_ + offsetof(Q6_KBlock, high_bits) + 32 * kPart);
    const GroupVec upper = kGroup < 2 ? shift_left < kGroup<2 ? 4 - 2 * kGroup : 0>(high)
                                      : shift_right < kGroup<2 ? 0 : 2 * kGroup - 4>(high);
    return hn::Or(mask_bits(shift_right<kGroup / 2 * 4>(low), 15), mask_bits(upper, 0x30));
  }

 protected:
  const std::byte* block_;

 private:
  alignas(16) std::int8_t scales_[16];
};

template <>
struct GroupBytes<DType::Q2_K> : SuperBlock<Q2_KBlock, 0> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : block_(from) {
    const hn::FixedTag<std::uint8_t, 16> d8;
    const hn::FixedTag<std::uint16_t, 8> d16;
    const auto both = even_bytes_first(hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)));
    hn::Store(hn::And(both, hn::Set(d8, 15)), d8, scales_);
    const auto high = hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, both)));
    hn::Store(hn::And(high, hn::Set(d8, 15)), d8, mins_);
    forget_memory(scales_);
    forget_memory(mins_);
  }
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t part) const {
    const float scale = f16_to_f32(read_as<std::uint16_t>(block_ + offsetof(Q2_KBlock, scale)));
    return hn::Mul(eight_bytes(scales_ + 8 * part), hn::Set(ScaleTag(), scale));
  }
  [[nodiscard]] HWY_INLINE ScaleVec offsets(std::size_t part) const {
    const float min = f16_to_f32(read_as<std::uint16_t>(block_ + offsetof(Q2_KBlock, min)));
    return hn::Mul(eight_bytes(mins_ + 8 * part), hn::Set(ScaleTag(), -min));
  }
  template <int kPart, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    const GroupVec bits = load_group(block_ + offsetof(Q2_KBlock, quants) + 32 * kPart);
    return mask_bits(shift_right<2 * kGroup>(bits), 3);
  }

 private:
  const std::byte* block_;
  alignas(16) std::uint8_t scales_[16];
  alignas(16) std::uint8_t mins_[16];
};

template <>
struct GroupBytes<DType::Q3_K> : SuperBlock<Q3_KBlock, 4> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : block_(from), high_(load_group(from)) {
    const hn::FixedTag<std::uint8_t, 16> d8;
    const hn::FixedTag<std::uint64_t, 2> d64;
    const std::array<std::uint64_t, 2> packed = Loader<DType::Q3_K>::group_scales(from);
    const auto both = hn::InterleaveLower(hn::Set(d64, packed[0]), hn::Set(d64, packed[1]));
    hn::Store(even_bytes_first(hn::BitCast(d8, both)), d8, scales_);
    forget_memory(scales_);
  }
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t part) const {
    const ScaleTag d;
    const float scale = f16_to_f32(read_as<std::uint16_t>(block_ + offsetof(Q3_KBlock, scale)));
    return hn::Mul(hn::Sub(eight_bytes(scales_ + 8 * part), hn::Set(d, 32.0F)), hn::Set(d, scale));
  }
  template <int kPart, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    constexpr int kBit = 4 * kPart + kGroup;
    const GroupVec bits = load_group(block_ + offsetof(Q3_KBlock, quants) + 32 * kPart);
    const GroupVec upper =
        kBit < 2 ? shift_left < kBit<2 ? 2 - kBit : 0>(high_) : shift_right < kBit<2 ? 0 : kBit - 2>(high_);
    return hn::Or(mask_bits(shift_right<2 * kGroup>(bits), 3), mask_bits(upper, 4));
  }

 private:
  const std::byte* block_;
  GroupVec high_;
  alignas(16) std::uint8_t scales_[16];
};

template <>
struct GroupBytes<DType::IQ4_XS> : SuperBlock<IQ4_XSBlock, 128> {
  HWY_INLINE explicit GroupBytes(const std::byte* from) : block_(from) {
    Loader<DType::IQ4_XS>::group_scales(from, scales_);
    forget_memory(scales_);
  }
  [[nodiscard]] HWY_INLINE ScaleVec scales(std::size_t part) const {
    return hn::LoadDup128(ScaleTag(), scales_ + 4 * part);
  }
  template <int kPart, int kGroup>
  [[nodiscard]] HWY_INLINE GroupVec bytes() const {
    return load_level_group(block_ + offsetof(IQ4_XSBlock, quants) + 64 * kPart + 16 * kGroup, kCodebook, kCentre);
  }

 protected:
  const std::byte* block_;

 private:
  alignas(32) float scales_[8];
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_GROUP_BYTES

#endif  // per-target include guard
