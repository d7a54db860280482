// Block loaders: rows of floating and quantized dtypes as vectors of F32. Included by the _simd.cpp files of
// several families, once per instruction set; formats and their sources are in blocks.h.
//
// `load_row<DType::X>(d, row, elements, sink)` decodes `elements` neighbouring elements beginning at a block
// and hands them to the sink, in any order:
//   sink.put<slot>(i, v)   elements i .. i + Lanes(d) - 1; slot (0 .. 3) is constant at each call site and
//                          neighbouring calls differ in it, for sinks with several accumulators
//   sink.one(i, value)     a single element: the rest of a plain row that does not fill a vector
// Values equal those of decode_row. Reads nothing outside the row; rows need no alignment.
#if defined(SHUNT_OPS_BLOCKS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BLOCKS_SIMD_INL_H_
#undef SHUNT_OPS_BLOCKS_SIMD_INL_H_
#else
#define SHUNT_OPS_BLOCKS_SIMD_INL_H_
#endif

#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/quantize/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The widest F32 vector for which a 16-byte half of a block is whole vectors.
using BlockTag = hn::CappedTag<float, 16>;
using BlockVec = hn::Vec<BlockTag>;
inline constexpr std::size_t kBlockLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

template <class T>
HWY_INLINE T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Makes the compiler forget what it knows of a value. Left alone, gcc builds vectors out of scalars, and
// broadcasts lanes of registers instead of scalars in memory: both with shuffles, which are scarce here.
template <class T>
HWY_INLINE void forget_register(T& value) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm volatile("" : "+r"(value));
#endif
}
template <class T>
HWY_INLINE void forget_memory(T& value) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm volatile("" : "+m"(value));
#endif
}

// Asks for the `bytes` that will be read kPrefetchBytes from now. Processors fetch ahead on their own, but not
// across pages; on a Sapphire Rapids core this raises a row by matrix product from memory by up to 30 %.
inline constexpr std::size_t kPrefetchBytes = 2048;
HWY_INLINE void prefetch(const std::byte* row, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) hwy::Prefetch(row + kPrefetchBytes + at);
}

// F16 -> F32. Highway's own fallback for processors without the instruction knows no infinities.
template <class D>
HWY_INLINE hn::Vec<D> load_f16(D d, const std::byte* from) {
  const hn::Rebind<std::uint16_t, D> du16;
  const auto half = hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(from));
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), half));
#else
  const hn::RebindToUnsigned<D> du32;
  const auto bits = hn::PromoteTo(du32, half);
  const auto magnitude = hn::And(bits, hn::Set(du32, 0x7FFF));
  // Read as F32, the shifted bits are the value over 2^112, subnormals included.
  const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112F));
  const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(du32, 0x7F800000));
  const auto quiet =
      hn::IfThenElse(hn::Eq(magnitude, hn::Set(du32, 0x7C00)), special, hn::Or(special, hn::Set(du32, 0x400000)));
  const auto is_special =
      hn::Gt(hn::BitCast(hn::RebindToSigned<D>(), magnitude), hn::Set(hn::RebindToSigned<D>(), 0x7BFF));
  const auto value = hn::IfThenElse(hn::RebindMask(du32, is_special), quiet, hn::BitCast(du32, scaled));
  return hn::BitCast(d, hn::Or(value, hn::ShiftLeft<16>(hn::And(bits, hn::Set(du32, 0x8000)))));
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> load_bf16(D d, const std::byte* from) {
  const hn::RebindToUnsigned<D> du32;
  const auto bits = hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du32, bits)));
}

// Lanes(d) unsigned or signed bytes -> I32.
template <class T, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> load_bytes(D, const void* from) {
  return hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<T, D>(), static_cast<const T*>(from)));
}

// Calls load(i) for each whole vector in turn, then one(i) for each element left.
#define SHUNT_LOAD_PLAIN(LOAD, ELEMENT_BYTES, ONE)                                                       \
  constexpr std::size_t kStep = kBlockLanes;                                                             \
  std::size_t i = 0;                                                                                     \
  for (; i + 4 * kStep <= elements; i += 4 * kStep) {                                                    \
    const std::byte* const p = row + i * (ELEMENT_BYTES);                                                \
    prefetch(p, 4 * kStep * (ELEMENT_BYTES));                                                            \
    sink.template put<0>(i, LOAD(d, p));                                                                 \
    sink.template put<1>(i + kStep, LOAD(d, p + kStep * (ELEMENT_BYTES)));                               \
    sink.template put<2>(i + 2 * kStep, LOAD(d, p + 2 * kStep * (ELEMENT_BYTES)));                       \
    sink.template put<3>(i + 3 * kStep, LOAD(d, p + 3 * kStep * (ELEMENT_BYTES)));                       \
  }                                                                                                      \
  for (; i + kStep <= elements; i += kStep) sink.template put<0>(i, LOAD(d, row + i * (ELEMENT_BYTES))); \
  for (; i < elements; ++i) sink.one(i, ONE(row + i * (ELEMENT_BYTES)))

HWY_INLINE BlockVec load_f32(BlockTag d, const std::byte* from) {
  return hn::LoadU(d, reinterpret_cast<const float*>(from));
}
HWY_INLINE float one_f32(const std::byte* from) { return read_as<float>(from); }
HWY_INLINE float one_f16(const std::byte* from) { return f16_to_f32(read_as<std::uint16_t>(from)); }
HWY_INLINE float one_bf16(const std::byte* from) { return bf16_to_f32(read_as<std::uint16_t>(from)); }

template <DType kDType>
struct Loader;

template <>
struct Loader<DType::F32> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    SHUNT_LOAD_PLAIN(load_f32, 4, one_f32);
  }
};

template <>
struct Loader<DType::F16> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    SHUNT_LOAD_PLAIN(load_f16, 2, one_f16);
  }
};

template <>
struct Loader<DType::BF16> {
  template <class Sink>
  static HWY_INLINE void row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
    SHUNT_LOAD_PLAIN(load_bf16, 2, one_bf16);
  }
};
#undef SHUNT_LOAD_PLAIN

// The F16 at the start of a block of at least eight bytes, in every lane.
HWY_INLINE BlockVec broadcast_f16(BlockTag d, const std::byte* block) {
  return hn::Set(d, hn::GetLane(load_f16(hn::FixedTag<float, 4>(), block)));
}

// The F16 at the start of each of four neighbouring blocks. Converted together and broadcast from memory: one
// at a time they would cost as many shuffles as the quants.
struct FourScales {
  alignas(16) float values[4];

  HWY_INLINE FourScales(const std::byte* blocks, std::size_t block_bytes) {
    const hn::FixedTag<float, 4> d4;
    std::uint64_t halves = 0;
    for (std::size_t b = 4; b-- > 0;) halves = halves << 16 | read_as<std::uint16_t>(blocks + b * block_bytes);
    forget_register(halves);
    hn::Store(load_f16(d4, reinterpret_cast<const std::byte*>(&halves)), d4, values);
    forget_memory(values);
  }
};

// Rows of 32-element blocks that begin with their scale. Base::block<kSlot>(d, quants, scale, i, sink).
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

// Sixteen values looked up by the low four bits of each index. With sixteen lanes the table is one register
// and scaling it replaces scaling every element.
struct NibbleTable {
#if HWY_TARGET == HWY_AVX3
  BlockVec values;
  // scale * q + offset
  HWY_INLINE NibbleTable(BlockTag d, BlockVec scale, BlockVec offset)
      : values(hn::MulAdd(hn::Iota(d, 0.0F), scale, offset)) {}
  // scale * (q - 8)
  HWY_INLINE NibbleTable(BlockTag d, BlockVec scale) : values(hn::Mul(hn::Iota(d, -8.0F), scale)) {}
  // The permutation reads four bits of an index, whatever the others are.
  HWY_INLINE BlockVec low(BlockTag, hn::Vec<hn::RebindToSigned<BlockTag>> bytes) const {
    return hn::TableLookupLanes(values, hn::Indices512<float>{bytes.raw});
  }
  HWY_INLINE BlockVec high(BlockTag, hn::Vec<hn::RebindToSigned<BlockTag>> bytes) const {
    return hn::TableLookupLanes(values, hn::Indices512<float>{hn::ShiftRight<4>(bytes).raw});
  }
#else
  BlockVec scale;
  BlockVec offset;
  HWY_INLINE NibbleTable(BlockTag, BlockVec s, BlockVec o) : scale(s), offset(o) {}
  HWY_INLINE NibbleTable(BlockTag d, BlockVec s) : scale(s), offset(hn::Mul(s, hn::Set(d, -8.0F))) {}
  HWY_INLINE BlockVec low(BlockTag d, hn::Vec<hn::RebindToSigned<BlockTag>> bytes) const {
    const hn::RebindToSigned<BlockTag> di;
    return hn::MulAdd(hn::ConvertTo(d, hn::And(bytes, hn::Set(di, 15))), scale, offset);
  }
  HWY_INLINE BlockVec high(BlockTag d, hn::Vec<hn::RebindToSigned<BlockTag>> bytes) const {
    return hn::MulAdd(hn::ConvertTo(d, hn::ShiftRight<4>(bytes)), scale, offset);
  }
#endif
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

// The eight scales and minima of a Q4_K or Q5_K block, times the block's own.
struct KScales {
  alignas(32) float scales[8];
  alignas(32) float offsets[8];  // minus the minima

  HWY_INLINE explicit KScales(const std::byte* block) {
    const hn::FixedTag<float, 4> d4;
    const hn::CappedTag<float, 8> d;
    // Both kinds begin with scale, min and twelve bytes of packed scales; see k_group.
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

// Whole bytes are put together first, many at a time, then widened.
using ByteTag = hn::CappedTag<std::uint8_t, 32>;

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

  // The 256 quants of a block, a byte each.
  static HWY_INLINE void join(const std::byte* block, std::uint8_t* quants) {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, ByteTag> d16;  // bytes have no shift of their own everywhere
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
        const auto upper = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, bytes))), nibble);
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
      const auto scale = hn::Set(d, f16_to_f32(read_as<std::uint16_t>(row + offsetof(Q6_KBlock, scale))));
      const std::byte* const groups = row + offsetof(Q6_KBlock, group_scales);
      for (std::size_t g = 0; g < 16; g += kBlockLanes)
        hn::Store(hn::Mul(hn::ConvertTo(d, load_bytes<std::int8_t>(d, groups + g)), scale), d, scales + g);
      forget_memory(scales);
      for (std::size_t half = 0; half < 2; ++half) join(row + 64 * half, row + 128 + 32 * half, quants + 128 * half);
      forget_memory(quants);
      for (std::size_t g = 0; g < 16; g += 4) {
        vectors<0>(d, quants + 16 * g, scales[g], i + 16 * g, sink);
        vectors<1>(d, quants + 16 * (g + 1), scales[g + 1], i + 16 * (g + 1), sink);
        vectors<2>(d, quants + 16 * (g + 2), scales[g + 2], i + 16 * (g + 2), sink);
        vectors<3>(d, quants + 16 * (g + 3), scales[g + 3], i + 16 * (g + 3), sink);
      }
    }
  }

 private:
  template <int kSlot, class Sink>
  static HWY_INLINE void vectors(BlockTag d, const std::int8_t* quants, float scale, std::size_t i, Sink& sink) {
    const auto factor = hn::Set(d, scale);
    for (std::size_t j = 0; j < 16; j += kBlockLanes)
      sink.template put<kSlot>(i + j, hn::Mul(hn::ConvertTo(d, load_bytes<std::int8_t>(d, quants + j)), factor));
  }

  // One half of a block, 128 elements, as signed bytes q - 32.
  static HWY_INLINE void join(const std::byte* low_bits, const std::byte* high_bits, std::int8_t* quants) {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, ByteTag> d16;
    const hn::RebindToSigned<ByteTag> di8;
    const auto nibble = hn::Set(d8, 15);
    const auto pair = hn::Set(d8, 0x30);
    const auto middle = hn::Set(di8, 32);
    for (std::size_t l = 0; l < 32; l += hn::MaxLanes(d8)) {
      const auto* low = reinterpret_cast<const std::uint8_t*>(low_bits) + l;
      const auto first = hn::LoadU(d8, low);
      const auto second = hn::LoadU(d8, low + 32);
      const auto high = hn::BitCast(d16, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(high_bits) + l));
      const auto first_upper = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, first))), nibble);
      const auto second_upper = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, second))), nibble);
      const hn::Vec<ByteTag> joined[4] = {
          hn::Or(hn::And(first, nibble), hn::And(hn::BitCast(d8, hn::ShiftLeft<4>(high)), pair)),
          hn::Or(hn::And(second, nibble), hn::And(hn::BitCast(d8, hn::ShiftLeft<2>(high)), pair)),
          hn::Or(first_upper, hn::And(hn::BitCast(d8, high), pair)),
          hn::Or(second_upper, hn::And(hn::BitCast(d8, hn::ShiftRight<2>(high)), pair))};
      for (std::size_t part = 0; part < 4; ++part)
        hn::Store(hn::Sub(hn::BitCast(di8, joined[part]), middle), di8, quants + 32 * part + l);
    }
  }
};

template <DType kDType, class Sink>
HWY_INLINE void load_row(BlockTag d, const std::byte* row, std::size_t elements, Sink& sink) {
  Loader<kDType>::row(d, row, elements, sink);
}

struct StoreSink {
  float* out;
  template <int kSlot>
  HWY_INLINE void put(std::size_t i, BlockVec v) const {
    hn::StoreU(v, BlockTag(), out + i);
  }
  HWY_INLINE void one(std::size_t i, float value) const { out[i] = value; }
};

template <DType kDType>
HWY_NOINLINE void store_row(const std::byte* row, std::size_t elements, float* out) {
  StoreSink sink{out};
  load_row<kDType>(BlockTag(), row, elements, sink);
}

// The SIMD twin of decode_row. REQUIRES: dtype is floating or quantized; elements is a whole number of blocks.
HWY_INLINE void decode_row_simd(DType dtype, const std::byte* row, std::size_t elements, float* out) {
  switch (dtype) {
#define SHUNT_STORE_floating(name) \
  case DType::name:                \
    return store_row<DType::name>(row, elements, out);
#define SHUNT_STORE_quantized(name) SHUNT_STORE_floating(name)
#define SHUNT_STORE_integer(name) \
  case DType::name:               \
    return;
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_STORE_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_STORE_floating
#undef SHUNT_STORE_quantized
#undef SHUNT_STORE_integer
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
