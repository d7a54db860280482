// Common ground of all block loaders: vectors of F32 from bytes and 16-bit floats, tables of sixteen values, and the
// loaders of the plain dtypes. Included by the loaders' files, once per instruction set; see blocks_simd-inl.h.
#if defined(SHUNT_OPS_BLOCK_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BLOCK_VECTORS_INL_H_
#undef SHUNT_OPS_BLOCK_VECTORS_INL_H_
#else
#define SHUNT_OPS_BLOCK_VECTORS_INL_H_
#endif

#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/prefetch.h"
#include "ops/quantize/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The widest F32 vector that splits half a block (16 elements) into whole vectors.
using BlockTag = hn::CappedTag<float, 16>;
using BlockVec = hn::Vec<BlockTag>;
inline constexpr std::size_t kBlockLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

template <class T>
HWY_INLINE T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Hides from the compiler what it knows about a value. Left alone, gcc builds vectors from scalars and broadcasts lanes
// of registers instead of scalars in memory. Both use shuffles, which are scarce here.
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

// Prefetches the `bytes` that begin kPrefetchBytes ahead. Processors fetch ahead on their own, but not across pages. On
// a Sapphire Rapids core this speeds up the product of a row and a matrix in memory by up to 30 %.
inline constexpr std::size_t kPrefetchBytes = 2048;
HWY_INLINE void prefetch(const std::byte* row, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) hwy::Prefetch(row + kPrefetchBytes + at);
}

// Converts F16 to F32. Highway's fallback for processors without the instruction does not handle infinities.
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
  // Read as F32, the shifted bits are the value divided by 2^112, subnormals included.
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

// Widens Lanes(d) unsigned or signed bytes to I32.
template <class T, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> load_bytes(D, const void* from) {
  return hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<T, D>(), static_cast<const T*>(from)));
}

// Hands the sink each whole vector in turn, then each remaining element.
#define SHUNT_LOAD_PLAIN(LOAD, ELEMENT_BYTES, ONE)                                                                \
  constexpr std::size_t kStep = kBlockLanes;                                                                      \
  std::size_t i = 0;                                                                                              \
  for (; i + 4 * kStep <= elements; i += 4 * kStep) {                                                             \
    const std::byte* const p = row + i * (ELEMENT_BYTES);                                                         \
    for (std::size_t at = 0; at < 4 * kStep * (ELEMENT_BYTES); at += 64) prefetch_plain(p + kPrefetchBytes + at); \
    sink.template put<0>(i, LOAD(d, p));                                                                          \
    sink.template put<1>(i + kStep, LOAD(d, p + kStep * (ELEMENT_BYTES)));                                        \
    sink.template put<2>(i + 2 * kStep, LOAD(d, p + 2 * kStep * (ELEMENT_BYTES)));                                \
    sink.template put<3>(i + 3 * kStep, LOAD(d, p + 3 * kStep * (ELEMENT_BYTES)));                                \
  }                                                                                                               \
  for (; i + kStep <= elements; i += kStep) sink.template put<0>(i, LOAD(d, row + i * (ELEMENT_BYTES)));          \
  for (; i < elements; ++i) sink.one(i, ONE(row + i * (ELEMENT_BYTES)))

HWY_INLINE BlockVec load_f32(BlockTag d, const std::byte* from) {
  return hn::LoadU(d, reinterpret_cast<const float*>(from));
}
HWY_INLINE float one_f32(const std::byte* from) { return read_as<float>(from); }
HWY_INLINE float one_f16(const std::byte* from) {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  __fp16 half;  // some compilers do not return this type
  std::memcpy(&half, from, sizeof(half));
  return static_cast<float>(half);
#else
  return f16_to_f32(read_as<std::uint16_t>(from));
#endif
}
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

// Broadcasts the F16 at the start of a block. REQUIRES: the block has at least eight bytes.
HWY_INLINE BlockVec broadcast_f16(BlockTag d, const std::byte* block) {
  return hn::Set(d, hn::GetLane(load_f16(hn::FixedTag<float, 4>(), block)));
}

// The F16 at the start of each of four consecutive blocks, converted together and broadcast from memory. Converting
// them one at a time would cost as many shuffles as the quants.
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

// Sixteen values, looked up by four bits of each byte. With sixteen lanes the table is one register, and scaling it
// replaces scaling every element.
struct NibbleTable {
#if HWY_TARGET == HWY_AVX3
  BlockVec values;
  HWY_INLINE explicit NibbleTable(BlockVec v) : values(v) {}
  // scale * q + offset
  HWY_INLINE NibbleTable(BlockTag d, BlockVec scale, BlockVec offset)
      : values(hn::MulAdd(hn::Iota(d, 0.0F), scale, offset)) {}
  // scale * (q - 8)
  HWY_INLINE NibbleTable(BlockTag d, BlockVec scale) : values(hn::Mul(hn::Iota(d, -8.0F), scale)) {}
  // The permutation reads the low four bits of an index and ignores the others.
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

// Quants are assembled as whole bytes, many at a time, and then widened.
using ByteTag = hn::CappedTag<std::uint8_t, 32>;
using HalfTag = hn::FixedTag<std::uint8_t, 16>;

// The nibbles of sixteen consecutive bytes, one per byte.
struct Nibbles {
  hn::Vec<HalfTag> low;
  hn::Vec<HalfTag> high;
  HWY_INLINE explicit Nibbles(const std::byte* from) {
    const HalfTag d8;
    const auto nibble = hn::Set(d8, 15);
    const auto bytes = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from));
    low = hn::And(bytes, nibble);
    high = hn::ShiftRight<4>(bytes);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
