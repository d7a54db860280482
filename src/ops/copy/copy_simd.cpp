#include <algorithm>

#include "ops/copy/copy.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#ifndef SHUNT_OPS_COPY_ONCE
#define SHUNT_OPS_COPY_ONCE
namespace shunt {
namespace {

// Elements of a row that are copied at a time. Scratch for conversions through F32 holds as many.
constexpr std::size_t kPiece = 1024;

bool is_floating(DType dtype) { return info_of(dtype).kind == DTypeKind::floating; }
std::uint64_t element_bytes(DType dtype) { return info_of(dtype).block_bytes; }

template <class T>
void copy_elements(const std::byte* in, std::uint64_t stride, std::size_t elements, std::byte* out) {
  for (std::size_t i = 0; i < elements; ++i) store_as<T>(out, i, load_as<T>(in, i * stride));
}

}  // namespace
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/copy/copy_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Copies at most kPiece elements of one row. `begin` and `stride` count elements of x.
void copy_piece(const CpuCall& call, DType from, DType to, std::uint64_t begin, std::uint64_t stride,
                std::size_t elements, std::byte* out) {
  const std::byte* in = call.inputs[0] + begin * element_bytes(from);
  if (from == to) {
    if (stride == 1)
      std::memcpy(out, in, elements * element_bytes(from));
    else if (element_bytes(from) == sizeof(std::uint8_t))
      copy_elements<std::uint8_t>(in, stride, elements, out);
    else if (element_bytes(from) == sizeof(std::uint16_t))
      copy_elements<std::uint16_t>(in, stride, elements, out);
    else
      copy_elements<std::uint32_t>(in, stride, elements, out);
  } else if (is_floating(from) && is_floating(to)) {
    float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
    narrow_row(to, floats_of(from, call.inputs[0], begin, stride, elements, buffer), elements, out);
  } else {
    for (std::size_t i = 0; i < elements; ++i) store_element(to, out, i, load_element(from, in, i * stride));
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<CopyArgs>();
  const DType from = static_cast<DType>(args.x.dtype);
  const DType to = static_cast<DType>(args.to);
  const std::uint64_t columns = args.x.extents[3];
  const Range share = share_of(valid_row_count(args.x, *call.parameters) * columns, call.share, call.shares, 64);
  for (std::uint64_t i = share.begin; i < share.end;) {
    const std::uint64_t column = i % columns;
    const std::size_t elements = std::min({columns - column, share.end - i, std::uint64_t{kPiece}});
    copy_piece(call, from, to, row_offset(args.x, i / columns) + column * args.x.strides[3], args.x.strides[3],
               elements, call.output + i * element_bytes(to));
    i += elements;
  }
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

CpuWork work(const OpCall&, std::uint32_t) {
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = kPiece * sizeof(float)};
}

}  // namespace

extern const CpuKernel copy_simd{fits_arguments, work, write_arguments<copy_arguments>,
                                 [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
