// The SIMD convolution: a matrix product in tiles or, if groups have few filters, row by row.
#include <algorithm>

#include "ops/conv2d/conv2d.h"
#include "ops/conv2d/conv2d_ahead.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/conv2d/conv2d_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/conv2d/conv2d_panel-inl.h"
#include "ops/conv2d/conv2d_rows-inl.h"
#include "ops/conv2d/conv2d_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

int run(const CpuCall& call) {
  if (conv_by_rows(call.args<Conv2dArgs>()))
    RowConvolution(call).run();
  else if (PanelConvolution::suits(call.args<Conv2dArgs>()))
    PanelConvolution(call).run();
  else
    TiledConvolution(call).run();
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

std::uint64_t row_scratch_floats(const Conv2dArgs& args) {
  const ConvRows cut = conv_rows(args);
  const std::uint64_t x_rows = (cut.rows - 1) * args.stride[0] + cut.reach;
  return cut.sum_floats(args) + 2 * std::uint64_t{args.kernel[0]} * args.kernel[1] + x_rows * cut.row_floats();
}

std::uint64_t tile_scratch_floats(const Conv2dArgs& call_args) {
  const Conv2dArgs args = in_long_rows(call_args);
  return conv_shifts(args) + kBlockRows * (kTileElements + kSumPitch) + Ahead::kFloats + conv_plane_floats(args);
}

CpuWork work(const OpCall& call, std::uint32_t) {
  const Conv2dArgs args = conv2d_arguments(call);
  const std::uint64_t floats = conv_by_rows(args) ? row_scratch_floats(args) : tile_scratch_floats(args);
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = floats * sizeof(float)};
}

}  // namespace

extern const CpuKernel conv2d_simd{fits_arguments, work, write_arguments<conv2d_arguments>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
