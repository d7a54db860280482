// Quants of quantized blocks as unsigned bytes, for products of integers. Included once per instruction set; formats
// are in blocks.h.
//
// BlockBytes<DType::X> describes how a block is unpacked:
//   kElements  of a block
//   kBytes     of a block, as it is stored
//   kGroup     neighbours that share a scale
//   kMost      the largest byte
//   kCentre    elements are scale * (byte - kCentre); 0: they are scale * byte + offset
//   read(block, bytes, scales, offsets)  unpacks a block; offsets are only of use if kCentre is 0.
//                                        REQUIRES: `bytes` aligned to 32 bytes, and room for a vector after `scales`
//                                        and `offsets`, each aligned to 64 bytes if the block has 256 elements
#if defined(SHUNT_OPS_BLOCK_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BLOCK_BYTES_INL_H_
#undef SHUNT_OPS_BLOCK_BYTES_INL_H_
#else
#define SHUNT_OPS_BLOCK_BYTES_INL_H_
#endif

#include <algorithm>

#include "ops/quantize/blocks_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// A dtype whose blocks are not unpacked to bytes.
template <DType kDType>
struct BlockBytes {
  static constexpr std::size_t kElements = 0;
};

template <class Block, std::size_t kMostByte, int kCentreByte>
struct ScaledBytes {
  static constexpr std::size_t kElements = 32;
  static constexpr std::size_t kBytes = sizeof(Block);
  static constexpr std::size_t kGroup = 32;
  static constexpr std::size_t kMost = kMostByte;
  static constexpr int kCentre = kCentreByte;

 protected:
  static HWY_INLINE float scale_of(const std::byte* block) { return one_f16(block); }
};

HWY_INLINE void store_nibbles(const std::byte* from, std::uint8_t* bytes) {
  const HalfTag d8;
  const Nibbles both(from);
  hn::StoreU(both.low, d8, bytes);
  hn::StoreU(both.high, d8, bytes + 16);
}

// Looks up the levels of sixteen bytes' nibbles and adds `centre` to them, which leaves no level negative.
HWY_INLINE void store_levels(const std::byte* from, const std::int8_t (&levels)[16], int centre, std::uint8_t* bytes) {
  const HalfTag d8;
  const auto table = hn::Add(hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(levels)),
                             hn::Set(d8, static_cast<std::uint8_t>(centre)));
  const Nibbles both(from);
  hn::StoreU(hn::TableLookupBytes(table, both.low), d8, bytes);
  hn::StoreU(hn::TableLookupBytes(table, both.high), d8, bytes + 16);
}

template <>
struct BlockBytes<DType::Q4_0> : ScaledBytes<Q4_0Block, 15, 8> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    scales[0] = scale_of(block);
    store_nibbles(block + offsetof(Q4_0Block, quants), bytes);
  }
};

template <>
struct BlockBytes<DType::Q4_1> : ScaledBytes<Q4_1Block, 15, 0> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float* offsets) {
    scales[0] = scale_of(block);
    offsets[0] = scale_of(block + offsetof(Q4_1Block, min));
    store_nibbles(block + offsetof(Q4_1Block, quants), bytes);
  }
};

template <>
struct BlockBytes<DType::Q5_0> : ScaledBytes<Q5_0Block, 31, 16> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    scales[0] = scale_of(block);
    join_five_bits(block + offsetof(Q5_0Block, quants), bytes);
  }
};

template <>
struct BlockBytes<DType::Q5_1> : ScaledBytes<Q5_1Block, 31, 0> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float* offsets) {
    scales[0] = scale_of(block);
    offsets[0] = scale_of(block + offsetof(Q5_1Block, min));
    join_five_bits(block + offsetof(Q5_1Block, quants), bytes);
  }
};

template <>
struct BlockBytes<DType::Q8_0> : ScaledBytes<Q8_0Block, 255, 128> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    const HalfTag d8;
    scales[0] = scale_of(block);
    const auto* const quants = reinterpret_cast<const std::uint8_t*>(block) + offsetof(Q8_0Block, quants);
    for (std::size_t i = 0; i < 32; i += 16)
      hn::StoreU(hn::Xor(hn::LoadU(d8, quants + i), hn::Set(d8, 128)), d8, bytes + i);
  }
};

template <>
struct BlockBytes<DType::IQ4_NL> : ScaledBytes<IQ4_NLBlock, 241, 128> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    scales[0] = scale_of(block);
    store_levels(block + offsetof(IQ4_NLBlock, quants), kCodebook, kCentre, bytes);
  }
};

template <>
struct BlockBytes<DType::MXFP4> : ScaledBytes<MXFP4Block, 24, 12> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    scales[0] = mx_scale(read_as<std::uint8_t>(block));
    store_levels(block + offsetof(MXFP4Block, quants), kMxValues, kCentre, bytes);
  }
};

template <class Block, std::size_t kGroupSize, std::size_t kMostByte, int kCentreByte>
struct SuperBytes {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = sizeof(Block);
  static constexpr std::size_t kGroup = kGroupSize;
  static constexpr std::size_t kMost = kMostByte;
  static constexpr int kCentre = kCentreByte;
};

HWY_INLINE void store_k_scales(const std::byte* block, float* scales, float* offsets) {
  const KScales k(block);
  std::copy_n(k.scales, 8, scales);
  std::copy_n(k.offsets, 8, offsets);
}

template <>
struct BlockBytes<DType::Q4_K> : SuperBytes<Q4_KBlock, 32, 15, 0> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float* offsets) {
    const ByteTag d8;
    const auto nibble = hn::Set(d8, 15);
    store_k_scales(block, scales, offsets);
    const auto* const quants = reinterpret_cast<const std::uint8_t*>(block) + offsetof(Q4_KBlock, quants);
    for (std::size_t pair = 0; pair < 4; ++pair)
      for (std::size_t l = 0; l < 32; l += hn::MaxLanes(d8)) {
        const auto both = hn::LoadU(d8, quants + 32 * pair + l);
        hn::StoreU(hn::And(both, nibble), d8, bytes + 64 * pair + l);
        hn::StoreU(hn::ShiftRight<4>(both), d8, bytes + 64 * pair + 32 + l);
      }
  }
};

template <>
struct BlockBytes<DType::Q5_K> : SuperBytes<Q5_KBlock, 32, 31, 0> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float* offsets) {
    store_k_scales(block, scales, offsets);
    Loader<DType::Q5_K>::join(block, bytes);
  }
};

template <>
struct BlockBytes<DType::Q6_K> : SuperBytes<Q6_KBlock, 16, 63, 32> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    Loader<DType::Q6_K>::read_scales(BlockTag(), block, scales);
    for (std::size_t half = 0; half < 2; ++half)
      Loader<DType::Q6_K>::join<0>(block + 64 * half, block + 128 + 32 * half, bytes + 128 * half);
  }
};

template <>
struct BlockBytes<DType::Q2_K> : SuperBytes<Q2_KBlock, 16, 3, 0> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float* offsets) {
    Loader<DType::Q2_K>::read(BlockTag(), block, scales, offsets, bytes);
  }
};

template <>
struct BlockBytes<DType::Q3_K> : SuperBytes<Q3_KBlock, 16, 7, 4> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    alignas(64) float offsets[16];
    Loader<DType::Q3_K>::read(BlockTag(), block, scales, offsets, bytes);
  }
};

template <>
struct BlockBytes<DType::IQ4_XS> : SuperBytes<IQ4_XSBlock, 32, 241, 128> {
  static HWY_INLINE void read(const std::byte* block, std::uint8_t* bytes, float* scales, float*) {
    Loader<DType::IQ4_XS>::group_scales(block, scales);
    for (std::size_t g = 0; g < 8; ++g)
      store_levels(block + offsetof(IQ4_XSBlock, quants) + 16 * g, kCodebook, kCentre, bytes + 32 * g);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
