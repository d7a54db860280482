// Loaders of the 256-element K blocks: Q2_K to Q6_K. Included by blocks_simd-inl.h, once per instruction set.
#if defined(SHUNT_OPS_K_BLOCKS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_K_BLOCKS_SIMD_INL_H_
#undef SHUNT_OPS_K_BLOCKS_SIMD_INL_H_
#else
#define SHUNT_OPS_K_BLOCKS_SIMD_INL_H_
#endif

#include <array>

#include "ops/quantize/block_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// The eight scales and minima of a Q4_K or Q5_K block, multiplied by the block's own.
struct KScales {
  alignas(32) float scales[8];
  alignas(32) float offsets[8];  // negated minima

  HWY_INLINE explicit KScales(const std::byte* block) {
    const hn::FixedTag<float, 4> d4;
    const hn::CappedTag<float, 8> d;
    // Both formats begin with scale, min and twelve bytes of packed scales; see k_group.
    alignas(16) float factors[4];
    hn::Store(load_f16(d4, block), d4, factors);
    const auto scale_words = read_as<std::uint32_t>(block + 4);
    const auto min_words = read_as<std::uint32_t>(block + 8);
    const auto mixed_words = read_as<std::uint32_t>(block + 12);
    const std::uint64_t packed[2] = {
        (scale_words & 0x3F3F3F3FU) | std::uint64_t{(mixed_words & 0x0F0F0F0FU) | ((scale_words >> 2) & 0x30303030U)}
                                          << 32,
        (min_words & 0x3F3F3F3FU) | std::uint64_t{((mixed_words >> 4) & 0x0F0F0F0FU) | ((min_words >> 2) & 0x30303030U)}
                                        << 32};
    forget_memory(factors);
    const auto scale = hn::Set(d, factors[0]);
    const auto min = hn::Set(d, factors[1]);
    for (std::size_t g = 0; g < 8; g += hn::MaxLanes(d)) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(packed) + g;
      hn::Store(hn::Mul(hn::ConvertTo(d, load_bytes<std::uint8_t>(d, bytes)), scale), d, scales + g);
      hn::Store(hn::Neg(hn::Mul(hn::ConvertTo(d, load_bytes<std::uint8_t>(d, bytes + 8)), min)), d, offsets + g);
    }
    forget_memory(scales);
    forget_memory(offsets);
  }
};

template <>
struct Loader<DType::Q4_K> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    for (std::size_t i = 0; i < elements; i += 256, row += sizeof(Q4_KBlock)) {
      prefetch(row, sizeof(Q4_KBlock));
      const KScales k(row);
      for (std::size_t pair = 0; pair < 4; ++pair)
        groups(d, row + offsetof(Q4_KBlock, quants) + 32 * pair, k, pair, i + 64 * pair, sink);
    }
  }

 private:
  template <class Sink>
  static HWY_INLINE void groups(BlockTag d, const std::byte* quants, const KScales& k, std::size_t pair, std::size_t i,
                                Sink& sink) {
    const NibbleTable low(d, hn::Set(d, k.scales[2 * pair]), hn::Set(d, k.offsets[2 * pair]));
    const NibbleTable high(d, hn::Set(d, k.scales[2 * pair + 1]), hn::Set(d, k.offsets[2 * pair + 1]));
    for (std::size_t j = 0; j < 32; j += 2 * kBlockLanes) {
      const auto first = load_bytes<std::uint8_t>(d, quants + j);
      const auto second = load_bytes<std::uint8_t>(d, quants + j + kBlockLanes);
      sink.template put<0>(i + j, low.low(d, first));
      sink.template put<1>(i + j + 32, high.high(d, first));
      sink.template put<2>(i + j + kBlockLanes, low.low(d, second));
      sink.template put<3>(i + j + kBlockLanes + 32, high.high(d, second));
    }
  }
};

template <>
struct Loader<DType::Q5_K> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    alignas(64) std::uint8_t quants[256];
    for (std::size_t i = 0; i < elements; i += 256, row += sizeof(Q5_KBlock)) {
      prefetch(row, sizeof(Q5_KBlock));
      const KScales k(row);
      join(row, quants);
      forget_memory(quants);
      for (std::size_t g = 0; g < 8; g += 2) {
        group<0>(d, quants + 32 * g, k.scales[g], k.offsets[g], i + 32 * g, sink);
        group<2>(d, quants + 32 * (g + 1), k.scales[g + 1], k.offsets[g + 1], i + 32 * (g + 1), sink);
      }
    }
  }

  // Unpacks the 256 quants of a block to a byte each.
  static HWY_INLINE void join(const std::byte* block, std::uint8_t* quants) {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, ByteTag> d16;
    const auto nibble = hn::Set(d8, 15);
    const auto fifth = hn::Set(d8, 16);
    for (std::size_t l = 0; l < 32; l += hn::MaxLanes(d8)) {
      const auto* bits = reinterpret_cast<const std::uint8_t*>(block) + offsetof(Q5_KBlock, high_bits) + l;
      const auto* low = reinterpret_cast<const std::uint8_t*>(block) + offsetof(Q5_KBlock, quants) + l;
      auto high = hn::BitCast(d16, hn::LoadU(d8, bits));
      for (std::size_t pair = 0; pair < 4; ++pair) {
        const auto bytes = hn::LoadU(d8, low + 32 * pair);
        const auto even = hn::And(hn::BitCast(d8, hn::ShiftLeft<4>(high)), fifth);
        const auto odd = hn::And(hn::BitCast(d8, hn::ShiftLeft<3>(high)), fifth);
        const auto upper = hn::ShiftRight<4>(bytes);
        hn::Store(hn::Or(hn::And(bytes, nibble), even), d8, quants + 64 * pair + l);
        hn::Store(hn::Or(upper, odd), d8, quants + 64 * pair + 32 + l);
        high = hn::ShiftRight<2>(high);
      }
    }
  }

 private:
  template <int kSlot, class Sink>
  static HWY_INLINE void group(BlockTag d, const std::uint8_t* quants, float scale, float offset, std::size_t i,
                               Sink& sink) {
    const auto factor = hn::Set(d, scale);
    const auto addend = hn::Set(d, offset);
    for (std::size_t j = 0; j < 32; j += 2 * kBlockLanes) {
      const auto first = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j));
      const auto second = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j + kBlockLanes));
      sink.template put<kSlot>(i + j, hn::MulAdd(first, factor, addend));
      sink.template put<kSlot + 1>(i + j + kBlockLanes, hn::MulAdd(second, factor, addend));
    }
  }
};

template <>
struct Loader<DType::Q6_K> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    alignas(64) std::int8_t quants[256];
    alignas(64) float scales[16];
    for (std::size_t i = 0; i < elements; i += 256, row += sizeof(Q6_KBlock)) {
      prefetch(row, sizeof(Q6_KBlock));
      read_scales(d, row, scales);
      forget_memory(scales);
      for (std::size_t half = 0; half < 2; ++half)
        join<32>(row + 64 * half, row + 128 + 32 * half, reinterpret_cast<std::uint8_t*>(quants) + 128 * half);
      forget_memory(quants);
      for (std::size_t g = 0; g < 16; g += 4) {
        vectors<0>(d, quants + 16 * g, scales[g], i + 16 * g, sink);
        vectors<1>(d, quants + 16 * (g + 1), scales[g + 1], i + 16 * (g + 1), sink);
        vectors<2>(d, quants + 16 * (g + 2), scales[g + 2], i + 16 * (g + 2), sink);
        vectors<3>(d, quants + 16 * (g + 3), scales[g + 3], i + 16 * (g + 3), sink);
      }
    }
  }

  static HWY_INLINE void read_scales(BlockTag d, const std::byte* block, float* scales) {
    const auto scale = hn::Set(d, one_f16(block + offsetof(Q6_KBlock, scale)));
    const std::byte* const groups = block + offsetof(Q6_KBlock, group_scales);
    for (std::size_t g = 0; g < 16; g += kBlockLanes)
      hn::Store(hn::Mul(hn::ConvertTo(d, load_bytes<std::int8_t>(d, groups + g)), scale), d, scales + g);
  }

  // Unpacks half a block, 128 elements, to bytes q - kMiddle.
  template <std::uint8_t kMiddle>
  static HWY_INLINE void join(const std::byte* low_bits, const std::byte* high_bits, std::uint8_t* quants) {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, ByteTag> d16;
    const auto nibble = hn::Set(d8, 15);
    const auto pair = hn::Set(d8, 0x30);
    const auto middle = hn::Set(d8, kMiddle);
    for (std::size_t l = 0; l < 32; l += hn::MaxLanes(d8)) {
      const auto* low = reinterpret_cast<const std::uint8_t*>(low_bits) + l;
      const auto first = hn::LoadU(d8, low);
      const auto second = hn::LoadU(d8, low + 32);
      const auto high = hn::BitCast(d16, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(high_bits) + l));
      const auto first_upper = hn::ShiftRight<4>(first);
      const auto second_upper = hn::ShiftRight<4>(second);
      const hn::Vec<ByteTag> joined[4] = {
          hn::Or(hn::And(first, nibble), hn::And(hn::BitCast(d8, hn::ShiftLeft<4>(high)), pair)),
          hn::Or(hn::And(second, nibble), hn::And(hn::BitCast(d8, hn::ShiftLeft<2>(high)), pair)),
          hn::Or(first_upper, hn::And(hn::BitCast(d8, high), pair)),
          hn::Or(second_upper, hn::And(hn::BitCast(d8, hn::ShiftRight<2>(high)), pair))};
      for (std::size_t part = 0; part < 4; ++part)
        hn::StoreU(hn::Sub(joined[part], middle), d8, quants + 32 * part + l);
    }
  }

 private:
  template <int kSlot, class Sink>
  static HWY_INLINE void vectors(BlockTag d, const std::int8_t* quants, float scale, std::size_t i, Sink& sink) {
    const auto factor = hn::Set(d, scale);
    for (std::size_t j = 0; j < 16; j += kBlockLanes)
      sink.template put<kSlot>(i + j, hn::Mul(hn::ConvertTo(d, load_bytes<std::int8_t>(d, quants + j)), factor));
  }
};

// Loads rows of 256-element blocks whose 16 groups of 16 have a scale and an offset each. Base::read(d, block, scales,
// offsets, quants) unpacks a block, its quants to a byte each.
template <class Block, class Base>
struct SixteenGroupLoader {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    alignas(64) std::uint8_t quants[256];
    alignas(64) float scales[16];
    alignas(64) float offsets[16];
    for (std::size_t i = 0; i < elements; i += 256, row += sizeof(Block)) {
      prefetch(row, sizeof(Block));
      Base::read(d, row, scales, offsets, quants);
      forget_memory(scales);
      forget_memory(offsets);
      forget_memory(quants);
      for (std::size_t g = 0; g < 16; g += 4) {
        vectors<0>(d, quants + 16 * g, scales[g], offsets[g], i + 16 * g, sink);
        vectors<1>(d, quants + 16 * (g + 1), scales[g + 1], offsets[g + 1], i + 16 * (g + 1), sink);
        vectors<2>(d, quants + 16 * (g + 2), scales[g + 2], offsets[g + 2], i + 16 * (g + 2), sink);
        vectors<3>(d, quants + 16 * (g + 3), scales[g + 3], offsets[g + 3], i + 16 * (g + 3), sink);
      }
    }
  }

 private:
  template <int kSlot, class Sink>
  static HWY_INLINE void vectors(BlockTag d, const std::uint8_t* quants, float scale, float offset, std::size_t i,
                                 Sink& sink) {
    const auto factor = hn::Set(d, scale);
    const auto addend = hn::Set(d, offset);
    for (std::size_t j = 0; j < 16; j += kBlockLanes)
      sink.template put<kSlot>(i + j,
                               hn::MulAdd(hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j)), factor, addend));
  }
};

template <>
struct Loader<DType::Q2_K> : SixteenGroupLoader<Q2_KBlock, Loader<DType::Q2_K>> {
  static HWY_INLINE void read(BlockTag d, const std::byte* block, float* scales, float* offsets, std::uint8_t* quants) {
    const hn::RebindToSigned<BlockTag> di;
    const auto scale = hn::Set(d, one_f16(block + offsetof(Q2_KBlock, scale)));
    const auto min = hn::Set(d, -one_f16(block + offsetof(Q2_KBlock, min)));
    for (std::size_t g = 0; g < 16; g += kBlockLanes) {
      const auto both = load_bytes<std::uint8_t>(d, block + g);
      hn::Store(hn::Mul(hn::ConvertTo(d, hn::And(both, hn::Set(di, 15))), scale), d, scales + g);
      hn::Store(hn::Mul(hn::ConvertTo(d, hn::ShiftRight<4>(both)), min), d, offsets + g);
    }
    join(block + offsetof(Q2_KBlock, quants), quants);
  }

 private:
  static HWY_INLINE void join(const std::byte* from, std::uint8_t* quants) {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, ByteTag> d16;
    const auto pair = hn::Set(d8, 3);
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t l = 0; l < 32; l += hn::MaxLanes(d8)) {
        auto bits = hn::BitCast(d16, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from) + 32 * half + l));
        for (std::size_t part = 0; part < 4; ++part) {
          hn::Store(hn::And(hn::BitCast(d8, bits), pair), d8, quants + 128 * half + 32 * part + l);
          bits = hn::ShiftRight<2>(bits);
        }
      }
  }
};

template <>
struct Loader<DType::Q3_K> : SixteenGroupLoader<Q3_KBlock, Loader<DType::Q3_K>> {
  static HWY_INLINE void read(BlockTag d, const std::byte* block, float* scales, float* offsets, std::uint8_t* quants) {
    const auto scale = hn::Set(d, one_f16(block + offsetof(Q3_KBlock, scale)));
    const std::array<std::uint64_t, 2> packed = group_scales(block);
    for (std::size_t g = 0; g < 16; g += kBlockLanes) {
      const auto bytes = load_bytes<std::uint8_t>(d, reinterpret_cast<const std::uint8_t*>(packed.data()) + g);
      const auto group = hn::Mul(hn::Sub(hn::ConvertTo(d, bytes), hn::Set(d, 32.0F)), scale);
      hn::Store(group, d, scales + g);
      hn::Store(hn::Mul(group, hn::Set(d, -4.0F)), d, offsets + g);
    }
    join(block, quants);
  }

  // Spreads the nibbles and pairs of bits of the 6-bit scales to a byte each; see q3_group_scale.
  static HWY_INLINE std::array<std::uint64_t, 2> group_scales(const std::byte* block) {
    const std::byte* const groups = block + offsetof(Q3_KBlock, group_scales);
    const auto nibbles = read_as<std::uint64_t>(groups);
    const std::uint64_t pairs = read_as<std::uint32_t>(groups + 8);
    const auto upper = [pairs](int shift) {
      return ((pairs >> shift & 0x03030303U) | (pairs >> (shift + 2) & 0x03030303U) << 32) << 4;
    };
    return {(nibbles & 0x0F0F0F0F0F0F0F0FU) | upper(0), (nibbles >> 4 & 0x0F0F0F0F0F0F0F0FU) | upper(4)};
  }

 private:
  static HWY_INLINE void join(const std::byte* block, std::uint8_t* quants) {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, ByteTag> d16;
    const auto pair = hn::Set(d8, 3);
    const auto third = hn::Set(d8, 4);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(block);
    for (std::size_t l = 0; l < 32; l += hn::MaxLanes(d8)) {
      auto high = hn::BitCast(d16, hn::LoadU(d8, bytes + offsetof(Q3_KBlock, high_bits) + l));
      for (std::size_t half = 0; half < 2; ++half) {
        auto bits = hn::BitCast(d16, hn::LoadU(d8, bytes + offsetof(Q3_KBlock, quants) + 32 * half + l));
        for (std::size_t part = 0; part < 4; ++part) {
          const auto upper = hn::And(hn::BitCast(d8, hn::ShiftLeft<2>(high)), third);
          hn::Store(hn::Or(hn::And(hn::BitCast(d8, bits), pair), upper), d8, quants + 128 * half + 32 * part + l);
          bits = hn::ShiftRight<2>(bits);
          high = hn::ShiftRight<1>(high);
        }
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
