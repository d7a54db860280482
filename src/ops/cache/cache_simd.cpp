#include <cmath>
#include <numbers>

#include "ops/cache/cache.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/quantize/encode.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cache/cache_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/rotary/rotate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Returns where head 0 of row `token` of x goes, in heads from the start of the state; kNoSlot for padding.
std::uint64_t first_head(const CacheArgs& args, const CpuCall& call, std::uint64_t token) {
  const std::int32_t position = call.in<std::int32_t>(2)[token * args.table.position_stride];
  const std::int32_t sequence = call.in<std::int32_t>(3)[token * args.table.sequence_stride];
  const std::uint64_t slot = state_slot(args.table, call.in<std::int32_t>(4), sequence, position);
  return slot == kNoSlot ? kNoSlot : slot * args.rotary.x.extents[2];
}

int run(const CpuCall& call) {
  const auto& args = call.args<CacheArgs>();
  const StridedTensor& x = args.rotary.x;
  const std::uint64_t heads = x.extents[2];
  const std::uint64_t head_dim = x.extents[3];
  const DType from = static_cast<DType>(x.dtype);
  const DType to = static_cast<DType>(args.state_dtype);
  const std::uint64_t head_bytes = cached_head_bytes(to, x.extents[3]);
  const Range share = share_of(valid_row_count(x, *call.parameters), call.share, call.shares);
  if (share.begin == share.end) return 0;
  Rotation rotation(args.rotary, nullptr, call.thread_scratch);
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch + rotation_scratch_bytes(x.extents[3]));
  std::uint64_t target = kNoSlot;
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    const std::uint64_t token = row / heads;
    if (row == share.begin || row % heads == 0) {
      target = first_head(args, call, token);
      if (args.rotates != 0) rotation.set_position(call.in<std::int32_t>(2)[token * args.table.position_stride]);
    }
    if (target == kNoSlot) continue;
    std::byte* const out = call.output + (target + row % heads) * head_bytes;
    const float* values = floats_of(from, call.inputs[1], row_offset(x, row), x.strides[3], head_dim, buffer);
    if (args.rotates != 0) {
      rotation.apply(values, buffer);
      values = buffer;
    }
    if (info_of(to).kind == DTypeKind::quantized)
      encode_row(to, values, head_dim, out);
    else
      narrow_row(to, values, head_dim, out);
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
  const std::uint32_t head_dim = call.input(1).shape[2];
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = rotation_scratch_bytes(head_dim) + head_dim * sizeof(float)};
}

}  // namespace

extern const CpuKernel cache_simd{fits_arguments, work, write_arguments<cache_arguments>,
                                  [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
