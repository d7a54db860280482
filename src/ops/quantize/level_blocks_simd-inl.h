// Loaders of the blocks whose quants are looked up in a table of levels: IQ4_NL, IQ4_XS, MXFP4. Included by
// blocks_simd-inl.h, once per instruction set.
#if defined(SHUNT_OPS_LEVEL_BLOCKS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_LEVEL_BLOCKS_SIMD_INL_H_
#undef SHUNT_OPS_LEVEL_BLOCKS_SIMD_INL_H_
#else
#define SHUNT_OPS_LEVEL_BLOCKS_SIMD_INL_H_
#endif

#include "ops/quantize/block_vectors-inl.h"
#include "ops/quantize/blocks32_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Decodes 32 elements with sixteen levels. On processors without a wide enough permutation, levels are looked up as
// bytes and widened as in Q8_0.
template <const std::int8_t (&kLevels)[16]>
struct LevelBlock {
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* quants, BlockVec scale, std::size_t i, Sink& sink) {
#if HWY_TARGET == HWY_AVX3
    const NibbleTable table(hn::Mul(hn::ConvertTo(d, load_bytes<std::int8_t>(d, kLevels)), scale));
    const auto bytes = load_bytes<std::uint8_t>(d, quants);
    sink.template put<kSlot>(i, table.low(d, bytes));
    sink.template put<kSlot + 1>(i + 16, table.high(d, bytes));
#else
    const HalfTag d8;
    alignas(32) std::uint8_t values[32];
    const auto levels = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(kLevels));
    const Nibbles both(quants);
    hn::Store(hn::TableLookupBytes(levels, both.low), d8, values);
    hn::Store(hn::TableLookupBytes(levels, both.high), d8, values + 16);
    forget_memory(values);
    Loader<DType::Q8_0>::block<kSlot>(d, reinterpret_cast<const std::byte*>(values), scale, i, sink);
#endif
  }
};

template <>
struct Loader<DType::IQ4_NL> : ScaledBlockLoader<IQ4_NLBlock, LevelBlock<kCodebook>> {};

template <>
struct Loader<DType::MXFP4> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    std::size_t i = 0;
    for (; i + 64 <= elements; i += 64, row += 2 * sizeof(MXFP4Block)) {
      prefetch(row, 2 * sizeof(MXFP4Block));
      block<0>(d, row, i, sink);
      block<2>(d, row + sizeof(MXFP4Block), i + 32, sink);
    }
    if (i < elements) block<0>(d, row, i, sink);
  }

 private:
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* block, std::size_t i, Sink& sink) {
    const auto scale = hn::Set(d, mx_scale(read_as<std::uint8_t>(block)));
    LevelBlock<kMxValues>::block<kSlot>(d, block + offsetof(MXFP4Block, quants), scale, i, sink);
  }
};

template <>
struct Loader<DType::IQ4_XS> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    alignas(32) float scales[8];
    for (std::size_t i = 0; i < elements; i += 256, row += sizeof(IQ4_XSBlock)) {
      prefetch(row, sizeof(IQ4_XSBlock));
      group_scales(row, scales);
      const std::byte* const quants = row + offsetof(IQ4_XSBlock, quants);
      for (std::size_t g = 0; g < 8; g += 2) {
        LevelBlock<kCodebook>::block<0>(d, quants + 16 * g, hn::Set(d, scales[g]), i + 32 * g, sink);
        LevelBlock<kCodebook>::block<2>(d, quants + 16 * g + 16, hn::Set(d, scales[g + 1]), i + 32 * g + 32, sink);
      }
    }
  }

  static HWY_INLINE void group_scales(const std::byte* block, float* scales) {
    const hn::CappedTag<float, 8> d;
    const auto scale = hn::Set(d, f16_to_f32(read_as<std::uint16_t>(block)));
    // Spreads nibbles and pairs of bits to a byte each.
    std::uint64_t low = read_as<std::uint32_t>(block + offsetof(IQ4_XSBlock, scales_low));
    low = (low | low << 16) & 0x0000FFFF0000FFFFU;
    low = (low | low << 8) & 0x00FF00FF00FF00FFU;
    low = (low | low << 4) & 0x0F0F0F0F0F0F0F0FU;
    std::uint64_t high = read_as<std::uint16_t>(block + offsetof(IQ4_XSBlock, scales_high));
    high = (high | high << 24) & 0x000000FF000000FFU;
    high = (high | high << 12) & 0x000F000F000F000FU;
    high = (high | high << 6) & 0x0303030303030303U;
    const std::uint64_t packed = low | high << 4;
    for (std::size_t g = 0; g < 8; g += hn::MaxLanes(d)) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(&packed) + g;
      const auto unsigned_scales = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, bytes));
      hn::Store(hn::Mul(hn::Sub(unsigned_scales, hn::Set(d, 32.0F)), scale), d, scales + g);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
