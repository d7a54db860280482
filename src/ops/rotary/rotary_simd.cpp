#include <cmath>
#include <numbers>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rotary/rotary.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rotary/rotary_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/rotary/rotate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

int run(const CpuCall& call) {
  const auto& args = call.args<RotaryArgs>();
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t heads = args.x.extents[2];
  const std::uint64_t head_dim = args.x.extents[3];
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  if (share.begin == share.end) return 0;
  Rotation rotation(args, args.has_factors != 0 ? call.inputs[2] : nullptr, call.thread_scratch);
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch + rotation_scratch_bytes(args.x.extents[3]));
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    if (row == share.begin || row % heads == 0)
      rotation.set_position(call.in<std::int32_t>(1)[row / heads * args.position_stride]);
    const float* x = floats_of(dtype, call.inputs[0], row_offset(args.x, row), args.x.strides[3], head_dim, buffer);
    float* const out = dtype == DType::F32 ? call.out<float>() + row * head_dim : buffer;
    rotation.apply(x, out);
    if (dtype != DType::F32) narrow_row(dtype, out, head_dim, call.output + row * head_dim * sizeof(std::uint16_t));
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
  const std::uint32_t head_dim = call.input(0).shape[2];
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = rotation_scratch_bytes(head_dim) + head_dim * sizeof(float)};
}

}  // namespace

extern const CpuKernel rotary_simd{fits_arguments, work,
                                   write_arguments<static_cast<RotaryArgs (*)(const OpCall&)>(rotary_arguments)>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
