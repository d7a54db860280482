#include <algorithm>

#include "ops/elements.h"
#include "ops/gather/gather.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gather/gather_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Widens elements [begin, end) of row `id` into row `to` of the result.
void widen_part(const GatherArgs& args, const CpuCall& call, std::uint64_t id, std::uint64_t to, Range part) {
  const DType dtype = static_cast<DType>(args.dtype);
  const DTypeInfo& info = info_of(dtype);
  const std::uint64_t begin = id * args.strides[0] + part.begin * args.strides[1];
  const std::size_t elements = part.end - part.begin;
  float* const out = call.out<float>() + to * args.columns + part.begin;
  if (info.kind == DTypeKind::quantized)
    return decode_row(dtype, call.inputs[0] + begin / info.block_elements * info.block_bytes, elements, out);
  if (args.strides[1] == 1) return widen_row(dtype, call.inputs[0] + begin * info.block_bytes, elements, out);
  floats_of(dtype, call.inputs[0], begin, args.strides[1], elements, out);
}

// Threads share elements rather than rows: one row is enough work for several. A share begins at a whole block: each
// row is a whole number of blocks, and the grain is a multiple of every block size.
int run(const CpuCall& call) {
  constexpr std::uint64_t kGrain = 256;
  const auto& args = call.args<GatherArgs>();
  const std::uint64_t columns = args.columns;
  const std::uint64_t valid = valid_rows(args.ids, static_cast<Extent>(args.extent), *call.parameters);
  const Range share = share_of(valid * columns, call.share, call.shares, kGrain);
  int code = 0;
  for (std::uint64_t i = share.begin; i < share.end;) {
    const std::uint64_t row = i / columns;
    const std::uint64_t end = std::min(share.end, (row + 1) * columns);
    const std::int32_t id = call.in<std::int32_t>(1)[row * args.id_stride];
    if (id < 0 || static_cast<std::uint32_t>(id) >= args.rows)
      code = kGatherIdOutOfRange;
    else
      widen_part(args, call, static_cast<std::uint32_t>(id), row, {i - row * columns, end - row * columns});
    i = end;
  }
  return code;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(run);

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

}  // namespace

extern const CpuKernel gather_simd{fits_gather_arguments, work, write_arguments<gather_arguments>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
