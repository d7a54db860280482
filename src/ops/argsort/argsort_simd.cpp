// Turns elements into integers in the order of their values, with the index in the lower half, and sorts these.
#include <algorithm>
#include <span>

#include "ops/argsort/argsort.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/argsort/argsort_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Computes keys that grow with the value, are equal for both zeros, and are greatest for NaN.
void keys_of(const float* x, std::size_t elements, std::uint32_t* keys) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const auto key_of = [&](auto value) {
    const auto bits = hn::BitCast(du, hn::Add(value, hn::Zero(d)));  // -0 + 0 is 0
    const auto sign = hn::Set(du, 0x80000000U);
    const auto negative =
        hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(hn::RebindToSigned<Floats>(), bits))));
    const auto key = hn::IfThenElse(hn::RebindMask(du, negative), hn::Not(bits), hn::Or(bits, sign));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), hn::Set(du, ~0U), key);
  };
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) hn::StoreU(key_of(hn::LoadU(d, x + i)), du, keys + i);
  for (; i < elements; ++i) keys[i] = hn::GetLane(key_of(hn::Set(d, x[i])));
}

void sort_row(const ArgsortArgs& args, const CpuCall& call, std::uint64_t row) {
  const std::size_t columns = args.x.extents[3];
  auto* const pairs = reinterpret_cast<std::uint64_t*>(call.thread_scratch);
  auto* const keys = reinterpret_cast<std::uint32_t*>(pairs + columns);
  auto* const copy = reinterpret_cast<float*>(keys + columns);
  const DType dtype = static_cast<DType>(args.x.dtype);
  keys_of(floats_of(dtype, call.inputs[0], row_offset(args.x, row), args.x.strides[3], columns, copy), columns, keys);
  for (std::size_t i = 0; i < columns; ++i) pairs[i] = std::uint64_t{keys[i]} << 32U | i;
  std::ranges::sort(std::span(pairs, columns));
  std::int32_t* const out = call.out<std::int32_t>() + row * columns;
  for (std::size_t i = 0; i < columns; ++i) out[i] = static_cast<std::int32_t>(pairs[i] & 0x7FFFFFFFU);
}

int run(const CpuCall& call) {
  const auto& args = call.args<ArgsortArgs>();
  const Range rows = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) sort_row(args, call, row);
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(run);

CpuWork work(const OpCall& call, std::uint32_t) {
  constexpr std::uint64_t kEach = sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(float);
  return {.thread_scratch_bytes = kEach * call.input(0).shape.columns()};
}

}  // namespace

extern const CpuKernel argsort_simd{fits_row_arguments, work, write_arguments<argsort_arguments>,
                                    [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
