#include <algorithm>

#include "ops/elements.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/expressions.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#ifndef SHUNT_OPS_ELEMENTWISE_ONCE
#define SHUNT_OPS_ELEMENTWISE_ONCE
namespace shunt {
// Elements of a row whose operands are converted to F32 at a time.
inline constexpr std::size_t kElementwisePiece = 1024;
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/elementwise_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/elementwise/prelude_simd-inl.h"
#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace prelude::expressions {

#define SHUNT_VALUE Vector
#define SHUNT_FUNCTION HWY_INLINE
#define SHUNT_ELEMENTWISE(...) SHUNT_ELEMENTWISE_FUNCTION(__VA_ARGS__)
#include "ops/ops.def"
#undef SHUNT_VALUE
#undef SHUNT_FUNCTION

}  // namespace prelude::expressions

namespace {

using prelude::Vector;

template <std::size_t kOperands, Vector (*expression)(const Vector*, const Vector*)>
HWY_INLINE void apply(const float* const* operands, const float* attributes, std::size_t elements, float* out) {
  const Floats d;
  Vector attribute[kMaxElementwiseOperands];
  for (std::size_t k = 0; k < kMaxElementwiseOperands; ++k) attribute[k] = attributes[k];
  Vector value[kOperands];
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    for (std::size_t k = 0; k < kOperands; ++k) value[k] = Vector(hn::LoadU(d, operands[k] + i));
    hn::StoreU(expression(value, attribute).lanes, d, out + i);
  }
  if (i == elements) return;
  HWY_ALIGN float rest[hn::MaxLanes(Floats())] = {};
  for (std::size_t k = 0; k < kOperands; ++k) {
    std::memcpy(rest, operands[k] + i, (elements - i) * sizeof(float));
    value[k] = Vector(hn::Load(d, rest));
  }
  hn::Store(expression(value, attribute).lanes, d, rest);
  std::memcpy(out + i, rest, (elements - i) * sizeof(float));
}

// One function per row; not inlined into the switch below.
#define SHUNT_ELEMENTWISE(name, inputs, attribute_list, tolerance, expression)                                \
  HWY_NOINLINE void apply_##name(const float* const* operands, const float* attributes, std::size_t elements, \
                                 float* out) {                                                                \
    apply<SHUNT_COUNT inputs, prelude::expressions::row_##name>(operands, attributes, elements, out);         \
  }
#include "ops/ops.def"

void apply_row(Op op, const float* const* operands, const float* attributes, std::size_t elements, float* out) {
  switch (op) {
#define SHUNT_ELEMENTWISE(name, inputs, attribute_list, tolerance, expression) \
  case Op::name:                                                               \
    return apply_##name(operands, attributes, elements, out);
#include "ops/ops.def"
    default:
      return;
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<ElementwiseArgs>();
  const std::uint64_t columns = args.x.extents[3];
  const DType dtype = static_cast<DType>(args.x.dtype);
  float* const buffers = reinterpret_cast<float*>(call.thread_scratch);
  const float* operands[kMaxElementwiseOperands];
  const Range share = share_of(valid_row_count(args.x, *call.parameters) * columns, call.share, call.shares, 64);
  for (std::uint64_t i = share.begin; i < share.end;) {
    const std::uint64_t row = i / columns;
    const std::uint64_t column = i % columns;
    const std::size_t elements = std::min({columns - column, share.end - i, std::uint64_t{kElementwisePiece}});
    for (std::uint32_t k = 0; k < args.operands; ++k)
      operands[k] = floats_of(static_cast<DType>(args.dtypes[k]), call.inputs[k],
                              row_offset(args.x.extents, args.strides[k], row) + column * args.strides[k][3],
                              args.strides[k][3], elements, buffers + k * kElementwisePiece);
    float* const result = dtype == DType::F32 ? call.out<float>() + i : buffers + args.operands * kElementwisePiece;
    apply_row(static_cast<Op>(args.op), operands, args.attributes, elements, result);
    if (dtype != DType::F32) narrow_row(dtype, result, elements, call.output + i * sizeof(std::uint16_t));
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

CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = (call.inputs.size() + 1) * kElementwisePiece * sizeof(float)};
}

}  // namespace

extern const CpuKernel elementwise_simd{fits_arguments, work, write_arguments<elementwise_arguments>,
                                        [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
