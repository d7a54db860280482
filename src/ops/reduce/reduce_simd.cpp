#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/reduce/reduce.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Sums short stretches in F32 and adds them up in double, so that long rows keep their precision. A null `b` stands for
// ones.
double sum_row(const float* x, const float* b, std::size_t elements) {
  constexpr std::size_t kStretch = 1024;
  const Floats d;
  double total = 0;
  for (std::size_t begin = 0; begin < elements; begin += kStretch) {
    const std::size_t end = begin + kStretch < elements ? begin + kStretch : elements;
    auto sum = hn::Zero(d);
    std::size_t i = begin;
    for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) {
      const auto value = hn::LoadU(d, x + i);
      sum = b == nullptr ? hn::Add(sum, value) : hn::MulAdd(value, hn::LoadU(d, b + i), sum);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; i < end; ++i) total += static_cast<double>(x[i]) * (b == nullptr ? 1.0 : static_cast<double>(b[i]));
  }
  return total;
}

float largest_of_row(const float* x, std::size_t elements) {
  const Floats d;
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto nan = hn::Zero(d);
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, x + i);
    largest = hn::IfThenElse(hn::Gt(value, largest), value, largest);
    nan = hn::IfThenElse(hn::IsNaN(value), value, nan);
  }
  if (!hn::AllFalse(d, hn::IsNaN(nan))) return std::numeric_limits<float>::quiet_NaN();
  float result = math::largest_lane(d, largest);
  for (; i < elements; ++i) result = x[i] > result || std::isnan(x[i]) ? x[i] : result;
  return result;
}

double reduced(const ReduceArgs& args, const CpuCall& call, std::uint64_t row) {
  const std::uint64_t columns = args.x.extents[3];
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
  const float* x = floats_of(static_cast<DType>(args.x.dtype), call.inputs[0], row_offset(args.x, row),
                             args.x.strides[3], columns, buffer);
  if (args.kind == kReduceMax) return static_cast<double>(largest_of_row(x, columns));
  const float* b = nullptr;
  if (args.kind == kReduceDot)
    b = floats_of(static_cast<DType>(args.b_dtype), call.inputs[1], row_offset(args.x.extents, args.b_strides, row),
                  args.b_strides[3], columns, buffer + columns);
  const double sum = sum_row(x, b, columns);
  return args.kind == kReduceMean ? sum / static_cast<double>(columns) : sum;
}

int run(const CpuCall& call) {
  const auto& args = call.args<ReduceArgs>();
  const Range rows = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row)
    store_element(static_cast<DType>(args.x.dtype), call.output, row, reduced(args, call, row));
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
          .thread_scratch_bytes = 2 * sizeof(float) * call.input(0).shape.columns()};
}

}  // namespace

extern const CpuKernel reduce_simd{fits_row_arguments, work, write_arguments<reduce_arguments>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
