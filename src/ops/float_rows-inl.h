// Conversions of F32, F16 and BF16 rows to and from F32 for the SIMD kernels, compiled once per instruction set.
//
// Included by x_simd.cpp files after hwy/highway.h, within foreach_target.
#if defined(SHUNT_OPS_FLOAT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_FLOAT_ROWS_INL_H_
#undef SHUNT_OPS_FLOAT_ROWS_INL_H_
#else
#define SHUNT_OPS_FLOAT_ROWS_INL_H_
#endif

#include "ops/elements.h"

// Instruction sets that convert F16 in hardware; the others use the conversions of blocks.h.
#undef SHUNT_HAS_F16_VECTORS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#define SHUNT_HAS_F16_VECTORS 1
#else
#define SHUNT_HAS_F16_VECTORS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// Returns how many elements the vector loops convert; the rest are converted one by one.
HWY_INLINE std::size_t whole_vectors(std::size_t elements) {
  return elements / hn::Lanes(Floats()) * hn::Lanes(Floats());
}

inline void widen_f16_row(const std::uint16_t* HWY_RESTRICT in, std::size_t elements, float* HWY_RESTRICT out) {
  std::size_t i = 0;
#if SHUNT_HAS_F16_VECTORS
  const Floats d;
  const hn::Rebind<hwy::float16_t, Floats> dh;
  const hn::Rebind<std::uint16_t, Floats> du;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, in + i))), d, out + i);
#endif
  for (; i < elements; ++i) out[i] = f16_to_f32(in[i]);
}

inline void narrow_f16_row(const float* HWY_RESTRICT in, std::size_t elements, std::uint16_t* HWY_RESTRICT out) {
  std::size_t i = 0;
#if SHUNT_HAS_F16_VECTORS
  const Floats d;
  const hn::Rebind<hwy::float16_t, Floats> dh;
  const hn::Rebind<std::uint16_t, Floats> du;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(d, in + i))), du, out + i);
#endif
  for (; i < elements; ++i) out[i] = f32_to_f16(in[i]);
}

inline void widen_bf16_row(const std::uint16_t* HWY_RESTRICT in, std::size_t elements, float* HWY_RESTRICT out) {
  const Floats d;
  const hn::Rebind<std::uint32_t, Floats> du;
  const hn::Rebind<std::uint16_t, Floats> dh;
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, in + i)))), d, out + i);
  for (; i < elements; ++i) out[i] = bf16_to_f32(in[i]);
}

inline void narrow_bf16_row(const float* HWY_RESTRICT in, std::size_t elements, std::uint16_t* HWY_RESTRICT out) {
  const Floats d;
  const hn::Rebind<std::uint32_t, Floats> du;
  const hn::Rebind<std::int32_t, Floats> di;
  const hn::Rebind<std::uint16_t, Floats> dh;
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, in + i);
    const auto bits = hn::BitCast(du, value);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto half = hn::Add(hn::Set(du, 0x7FFFU), hn::And(upper, hn::Set(du, 1U)));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, half));
    const auto quiet = hn::Or(upper, hn::Set(du, 0x40U));
    const auto result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, result)), dh, out + i);
  }
  for (; i < elements; ++i) out[i] = f32_to_bf16(in[i]);
}

// REQUIRES: dtype is F32, F16 or BF16.
inline void widen_row(DType dtype, const std::byte* in, std::size_t elements, float* out) {
  if (dtype == DType::F16) return widen_f16_row(reinterpret_cast<const std::uint16_t*>(in), elements, out);
  if (dtype == DType::BF16) return widen_bf16_row(reinterpret_cast<const std::uint16_t*>(in), elements, out);
  std::memcpy(out, in, elements * sizeof(float));
}

// REQUIRES: dtype is F32, F16 or BF16.
inline void narrow_row(DType dtype, const float* in, std::size_t elements, std::byte* out) {
  if (dtype == DType::F16) return narrow_f16_row(in, elements, reinterpret_cast<std::uint16_t*>(out));
  if (dtype == DType::BF16) return narrow_bf16_row(in, elements, reinterpret_cast<std::uint16_t*>(out));
  std::memcpy(out, in, elements * sizeof(float));
}

// Returns a row as contiguous floats, in place if possible, else in `buffer`. `begin` and `stride` count elements.
inline const float* floats_of(DType dtype, const std::byte* data, std::uint64_t begin, std::uint64_t stride,
                              std::size_t elements, float* buffer) {
  if (stride == 1 && dtype == DType::F32) return reinterpret_cast<const float*>(data) + begin;
  if (stride == 1) {
    widen_row(dtype, data + begin * sizeof(std::uint16_t), elements, buffer);
    return buffer;
  }
  for (std::size_t i = 0; i < elements; ++i)
    buffer[i] = static_cast<float>(load_element(dtype, data, begin + i * stride));
  return buffer;
}

// Adds factor * x to sum.
inline void add_scaled_row(const float* x, float factor, std::size_t elements, float* sum) {
  const Floats d;
  const auto factors = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factors, hn::LoadU(d, sum + i)), d, sum + i);
  for (; i < elements; ++i) sum[i] = x[i] * factor + sum[i];
}

// Calls compute(row, columns) for the call's share of `rows` rows, at most `most` columns at a time. Elements are
// shared, because one row is enough work for several.
template <class Compute>
void for_each_piece(const CpuCall& call, std::uint64_t rows, std::uint64_t columns, std::uint64_t most,
                    Compute compute) {
  const Range share = share_of(rows * columns, call.share, call.shares, 64);
  for (std::uint64_t i = share.begin; i < share.end;) {
    const std::uint64_t row = i / columns;
    const std::uint64_t begin = i - row * columns;
    const std::uint64_t end = begin + HWY_MIN(HWY_MIN(columns - begin, most), share.end - i);
    compute(row, Range{begin, end});
    i += end - begin;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif
