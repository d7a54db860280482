#include <algorithm>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"
#include "ops/weighted_sum/weighted_sum.h"

#ifndef SHUNT_OPS_WEIGHTED_SUM_ONCE
#define SHUNT_OPS_WEIGHTED_SUM_ONCE
namespace shunt {
// Columns summed at a time.
inline constexpr std::size_t kWeightedSumPiece = 512;
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/weighted_sum/weighted_sum_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// sum = weight * x
void set_row(const float* x, float weight, std::size_t elements, float* sum) {
  const Floats d;
  const auto weights = hn::Set(d, weight);
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), weights), d, sum + i);
  for (; i < elements; ++i) sum[i] = x[i] * weight;
}

// Sums columns of one row, at most kWeightedSumPiece of them.
void sum_piece(const WeightedSumArgs& args, const CpuCall& call, std::uint64_t row, Range columns) {
  const DType dtype = static_cast<DType>(args.x_dtype);
  const std::uint64_t weights = row_offset(args.weights, row);
  const std::uint64_t begin =
      row_offset(args.weights.extents, args.x_strides, row) + columns.begin * args.column_stride;
  const std::size_t elements = columns.end - columns.begin;
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
  float* const sum = buffer + kWeightedSumPiece;
  if (args.weights.extents[3] == 0) std::fill_n(sum, elements, 0.0F);
  for (std::uint64_t j = 0; j < args.weights.extents[3]; ++j) {
    const double weight =
        load_element(static_cast<DType>(args.weights.dtype), call.inputs[1], weights + j * args.weights.strides[3]);
    const float* x =
        floats_of(dtype, call.inputs[0], begin + j * args.x_strides[3], args.column_stride, elements, buffer);
    if (j == 0)
      set_row(x, static_cast<float>(weight), elements, sum);
    else
      add_scaled_row(x, static_cast<float>(weight), elements, sum);
  }
  narrow_row(dtype, sum, elements, call.output + (row * args.columns + columns.begin) * info_of(dtype).block_bytes);
}

int run(const CpuCall& call) {
  const auto& args = call.args<WeightedSumArgs>();
  for_each_piece(call, valid_row_count(args.weights, *call.parameters), args.columns, kWeightedSumPiece,
                 [&](std::uint64_t row, Range columns) { sum_piece(args, call, row, columns); });
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
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = 2 * kWeightedSumPiece * sizeof(float)};
}

}  // namespace

extern const CpuKernel weighted_sum_simd{fits_arguments, work, write_arguments<weighted_sum_arguments>,
                                         [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
