// Loaders of the 32-element blocks: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. Included by blocks_simd-inl.h, once per instruction
// set.
#if defined(SHUNT_OPS_BLOCKS32_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BLOCKS32_SIMD_INL_H_
#undef SHUNT_OPS_BLOCKS32_SIMD_INL_H_
#else
#define SHUNT_OPS_BLOCKS32_SIMD_INL_H_
#endif

#include "ops/quantize/block_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Loads rows of 32-element blocks that begin with their scale. Calls Base::block<kSlot>(d, quants, scale, i, sink) for
// each.
template <class Block, class Base>
struct ScaledBlockLoader {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    constexpr std::size_t kBytes = sizeof(Block);
    constexpr std::size_t kQuants = offsetof(Block, quants);
    std::size_t i = 0;
    for (; i + 128 <= elements; i += 128, row += 4 * kBytes) {
      prefetch(row, 4 * kBytes);
      const FourScales scales(row, kBytes);
      const std::byte* const quants = row + kQuants;
      Base::template block<0>(d, quants, hn::Set(d, scales.values[0]), i, sink);
      Base::template block<2>(d, quants + kBytes, hn::Set(d, scales.values[1]), i + 32, sink);
      Base::template block<0>(d, quants + 2 * kBytes, hn::Set(d, scales.values[2]), i + 64, sink);
      Base::template block<2>(d, quants + 3 * kBytes, hn::Set(d, scales.values[3]), i + 96, sink);
    }
    for (; i < elements; i += 32, row += kBytes)
      Base::template block<0>(d, row + kQuants, broadcast_f16(d, row), i, sink);
  }
};

template <>
struct Loader<DType::Q8_0> : ScaledBlockLoader<Q8_0Block, Loader<DType::Q8_0>> {
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* quants, BlockVec scale, std::size_t i, Sink& sink) {
    for (std::size_t j = 0; j < 32; j += 2 * kBlockLanes) {
      const auto low = hn::ConvertTo(d, load_bytes<std::int8_t>(d, quants + j));
      const auto high = hn::ConvertTo(d, load_bytes<std::int8_t>(d, quants + j + kBlockLanes));
      sink.template put<kSlot>(i + j, hn::Mul(low, scale));
      sink.template put<kSlot + 1>(i + j + kBlockLanes, hn::Mul(high, scale));
    }
  }
};

template <>
struct Loader<DType::Q4_0> : ScaledBlockLoader<Q4_0Block, Loader<DType::Q4_0>> {
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* quants, BlockVec scale, std::size_t i, Sink& sink) {
    const NibbleTable table(d, scale);
    for (std::size_t j = 0; j < 16; j += kBlockLanes) {
      const auto bytes = load_bytes<std::uint8_t>(d, quants + j);
      sink.template put<kSlot>(i + j, table.low(d, bytes));
      sink.template put<kSlot + 1>(i + j + 16, table.high(d, bytes));
    }
  }
};

// Loads rows of 32-element blocks that begin with their scale and minimum.
// Calls Base::block<kSlot>(d, quants, scale, min, i, sink) for each.
template <class Block, class Base>
struct AffineBlockLoader {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    constexpr std::size_t kBytes = sizeof(Block);
    constexpr std::size_t kQuants = offsetof(Block, quants);
    constexpr std::size_t kMin = offsetof(Block, min);
    std::size_t i = 0;
    for (; i + 128 <= elements; i += 128, row += 4 * kBytes) {
      prefetch(row, 4 * kBytes);
      const FourScales scales(row, kBytes);
      const FourScales mins(row + kMin, kBytes);
      for (std::size_t b = 0; b < 4; b += 2) {
        const std::byte* const quants = row + b * kBytes + kQuants;
        Base::template block<0>(d, quants, hn::Set(d, scales.values[b]), hn::Set(d, mins.values[b]), i + 32 * b, sink);
        Base::template block<2>(d, quants + kBytes, hn::Set(d, scales.values[b + 1]), hn::Set(d, mins.values[b + 1]),
                                i + 32 * b + 32, sink);
      }
    }
    for (; i < elements; i += 32, row += kBytes)
      Base::template block<0>(d, row + kQuants, broadcast_f16(d, row), broadcast_f16(d, row + kMin), i, sink);
  }
};

template <>
struct Loader<DType::Q4_1> : AffineBlockLoader<Q4_1Block, Loader<DType::Q4_1>> {
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* quants, BlockVec scale, BlockVec min, std::size_t i,
                               Sink& sink) {
    const NibbleTable table(d, scale, min);
    for (std::size_t j = 0; j < 16; j += kBlockLanes) {
      const auto bytes = load_bytes<std::uint8_t>(d, quants + j);
      sink.template put<kSlot>(i + j, table.low(d, bytes));
      sink.template put<kSlot + 1>(i + j + 16, table.high(d, bytes));
    }
  }
};

// Spreads sixteen bits to a byte each: byte j is 16 if bit j % 8 of byte bytes[j] of `word` is set, else 0.
HWY_INLINE hn::Vec<HalfTag> spread_bits(std::uint32_t word, const std::uint8_t* bytes) {
  const HalfTag d8;
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto words = hn::BitCast(d8, hn::Set(hn::Repartition<std::uint32_t, HalfTag>(), word));
  const auto bits = hn::Load(d8, kBits);
  const auto seen = hn::And(hn::TableLookupBytes(words, hn::Load(d8, bytes)), bits);
  return hn::IfThenElseZero(hn::Eq(seen, bits), hn::Set(d8, 16));
}

// Unpacks the 32 quants of a Q5_0 or Q5_1 block to a byte each. The high bits are stored just before the nibbles.
HWY_INLINE void join_five_bits(const std::byte* nibbles, std::uint8_t* quants) {
  const HalfTag d8;
  alignas(16) static constexpr std::uint8_t kLow[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr std::uint8_t kHigh[16] = {2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const auto high_bits = read_as<std::uint32_t>(nibbles - sizeof(std::uint32_t));
  const Nibbles both(nibbles);
  hn::Store(hn::Or(both.low, spread_bits(high_bits, kLow)), d8, quants);
  hn::Store(hn::Or(both.high, spread_bits(high_bits, kHigh)), d8, quants + 16);
}

template <>
struct Loader<DType::Q5_0> : ScaledBlockLoader<Q5_0Block, Loader<DType::Q5_0>> {
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* nibbles, BlockVec scale, std::size_t i, Sink& sink) {
    alignas(32) std::uint8_t quants[32];
    join_five_bits(nibbles, quants);
    forget_memory(quants);
    const auto middle = hn::Set(d, -16.0F);
    for (std::size_t j = 0; j < 32; j += 2 * kBlockLanes) {
      const auto low = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j));
      const auto high = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j + kBlockLanes));
      sink.template put<kSlot>(i + j, hn::Mul(hn::Add(low, middle), scale));
      sink.template put<kSlot + 1>(i + j + kBlockLanes, hn::Mul(hn::Add(high, middle), scale));
    }
  }
};

template <>
struct Loader<DType::Q5_1> : AffineBlockLoader<Q5_1Block, Loader<DType::Q5_1>> {
  template <int kSlot, class Sink>
  static HWY_INLINE void block(BlockTag d, const std::byte* nibbles, BlockVec scale, BlockVec min, std::size_t i,
                               Sink& sink) {
    alignas(32) std::uint8_t quants[32];
    join_five_bits(nibbles, quants);
    forget_memory(quants);
    for (std::size_t j = 0; j < 32; j += 2 * kBlockLanes) {
      const auto low = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j));
      const auto high = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + j + kBlockLanes));
      sink.template put<kSlot>(i + j, hn::MulAdd(low, scale, min));
      sink.template put<kSlot + 1>(i + j + kBlockLanes, hn::MulAdd(high, scale, min));
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
