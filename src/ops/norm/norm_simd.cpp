#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/norm/norm.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/norm_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Short stretches are summed in F32 and their sums in double, so that long rows keep their precision.
double sum_of_squares(const float* x, std::size_t elements) {
  constexpr std::size_t kStretch = 1024;
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  double total = 0;
  for (std::size_t begin = 0; begin < elements; begin += kStretch) {
    const std::size_t end = begin + kStretch < elements ? begin + kStretch : elements;
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    std::size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto a = hn::LoadU(d, x + i);
      const auto b = hn::LoadU(d, x + i + lanes);
      sum0 = hn::MulAdd(a, a, sum0);
      sum1 = hn::MulAdd(b, b, sum1);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1))));
    for (; i < end; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return total;
}

// out = x * factor (* weight); `weight` may be null.
void scale_row(const float* x, float factor, const float* weight, std::size_t elements, float* out) {
  const Floats d;
  const auto factors = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    auto value = hn::Mul(hn::LoadU(d, x + i), factors);
    if (weight != nullptr) value = hn::Mul(value, hn::LoadU(d, weight + i));
    hn::StoreU(value, d, out + i);
  }
  for (; i < elements; ++i) out[i] = weight == nullptr ? x[i] * factor : x[i] * factor * weight[i];
}

// Writes the columns of `part` of one row.
void normalize_row(const NormArgs& args, const CpuCall& call, std::uint64_t row, Range part) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  float* const row_buffer = reinterpret_cast<float*>(call.thread_scratch);
  float* const weight_buffer = row_buffer + columns;
  const float* x = floats_of(dtype, call.inputs[0], row_offset(args.x, row), args.x.strides[3], columns, row_buffer);
  const double mean = sum_of_squares(x, columns) / static_cast<double>(columns);
  const auto factor = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(args.epsilon)));

  const std::size_t elements = part.end - part.begin;
  const float* weight = nullptr;
  if (args.has_weight != 0)
    weight = floats_of(static_cast<DType>(args.weight_dtype), call.inputs[1],
                       row_offset(args.x.extents, args.weight_strides, row) + part.begin * args.weight_strides[3],
                       args.weight_strides[3], elements, weight_buffer);
  const std::uint64_t target = row * columns + part.begin;
  if (dtype == DType::F32) return scale_row(x + part.begin, factor, weight, elements, call.out<float>() + target);
  scale_row(x + part.begin, factor, weight, elements, row_buffer);
  narrow_row(dtype, row_buffer, elements, call.output + target * sizeof(std::uint16_t));
}

// Shares are rows. With fewer rows than shares, each sums whole rows and writes some columns.
int run(const CpuCall& call) {
  const auto& args = call.args<NormArgs>();
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t valid = valid_row_count(args.x, *call.parameters);
  const bool by_rows = valid >= call.shares;
  const Range rows = by_rows ? share_of(valid, call.share, call.shares) : Range{0, valid};
  const Range part = by_rows ? Range{0, columns} : share_of(columns, call.share, call.shares, 64);
  if (part.begin == part.end) return 0;
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) normalize_row(args, call, row, part);
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

extern const CpuKernel norm_simd{fits_row_arguments, work, write_arguments<norm_arguments>,
                                 [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
