// Vectors run along the rows of x: the rows under the kernel are combined first, then the columns of the combined row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/pool2d/pool2d.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pool2d/pool2d_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

float joined(bool is_max, float a, float b) {
  if (!is_max) return a + b;
  return b > a || std::isnan(b) ? b : a;
}

// Combines x into sums: adds it, or takes the maximum.
void join_row(bool is_max, const float* HWY_RESTRICT x, std::size_t elements, float* HWY_RESTRICT sums) {
  const Floats d;
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    const auto a = hn::LoadU(d, sums + i);
    const auto b = hn::LoadU(d, x + i);
    const auto is_b = hn::Or(hn::Gt(b, a), hn::IsNaN(b));
    hn::StoreU(is_max ? hn::IfThenElse(is_b, b, a) : hn::Add(a, b), d, sums + i);
  }
  for (; i < elements; ++i) sums[i] = joined(is_max, sums[i], x[i]);
}

// Computes a row of the result.
void pool_row(const Pool2dArgs& args, const CpuCall& call, std::uint64_t row) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const bool is_max = args.is_max != 0;
  const std::size_t width = args.x.extents[3];
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
  float* const sums = buffer + width;
  float* const out = sums + width;
  const float none = is_max ? -std::numeric_limits<float>::infinity() : 0.0F;
  const std::uint64_t plane = row / args.places[0];
  const std::uint64_t begin =
      plane / args.x.extents[1] * args.x.strides[0] + plane % args.x.extents[1] * args.x.strides[1];
  const PoolRange rows = pool_range(args, 0, row % args.places[0]);
  std::fill_n(sums, width, none);
  for (std::uint64_t y = rows.begin; y < rows.end; ++y)
    join_row(is_max, floats_of(dtype, call.inputs[0], begin + y * args.x.strides[2], args.x.strides[3], width, buffer),
             width, sums);
  for (std::uint32_t x = 0; x < args.places[1]; ++x) {
    const PoolRange columns = pool_range(args, 1, x);
    float value = none;
    for (std::uint64_t column = columns.begin; column < columns.end; ++column)
      value = joined(is_max, value, sums[column]);
    const auto count = static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
    out[x] = is_max ? value : value / count;
  }
  narrow_row(dtype, out, args.places[1], call.output + row * args.places[1] * info_of(dtype).block_bytes);
}

int run(const CpuCall& call) {
  const auto& args = call.args<Pool2dArgs>();
  const std::uint64_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), *call.parameters);
  const Range rows = share_of(images * args.x.extents[1] * args.places[0], call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) pool_row(args, call, row);
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
  const std::uint64_t floats = 2 * std::uint64_t{call.input(0).shape[3]} + call.output->shape[3];
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = floats * sizeof(float)};
}

}  // namespace

extern const CpuKernel pool2d_simd{fits_arguments, work, write_arguments<pool2d_arguments>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
