#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layer_norm/layer_norm_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Returns the sum of x - shift, or of its squares. Short stretches are summed in F32 and their sums in double, so that
// long rows keep their precision.
template <bool kSquares>
double sum_of(const float* x, float shift, std::size_t elements) {
  constexpr std::size_t kStretch = 1024;
  const Floats d;
  double total = 0;
  for (std::size_t begin = 0; begin < elements; begin += kStretch) {
    const std::size_t end = begin + kStretch < elements ? begin + kStretch : elements;
    auto sum = hn::Zero(d);
    std::size_t i = begin;
    for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) {
      const auto value = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift));
      sum = kSquares ? hn::MulAdd(value, value, sum) : hn::Add(value, sum);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; i < end; ++i) {
      const double value = static_cast<double>(x[i]) - static_cast<double>(shift);
      total += kSquares ? value * value : value;
    }
  }
  return total;
}

// out = (x - mean) * factor
void scale_row(const float* x, float mean, float factor, std::size_t elements, float* out) {
  const Floats d;
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, factor)), d, out + i);
  for (; i < elements; ++i) out[i] = (x[i] - mean) * factor;
}

// Writes the columns of `part` of one row.
void normalize_row(const LayerNormArgs& args, const CpuCall& call, std::uint64_t row, Range part) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  const auto count = static_cast<double>(columns);
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
  const float* x = floats_of(dtype, call.inputs[0], row_offset(args.x, row), args.x.strides[3], columns, buffer);
  const auto mean = static_cast<float>(sum_of<false>(x, 0, columns) / count);
  const double variance = sum_of<true>(x, mean, columns) / count;
  const auto factor = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(args.epsilon)));
  const std::size_t elements = part.end - part.begin;
  const std::uint64_t target = row * columns + part.begin;
  if (dtype == DType::F32) return scale_row(x + part.begin, mean, factor, elements, call.out<float>() + target);
  scale_row(x + part.begin, mean, factor, elements, buffer);
  narrow_row(dtype, buffer, elements, call.output + target * sizeof(std::uint16_t));
}

// Shares are rows. With fewer rows than shares, each sums whole rows and writes some columns.
int run(const CpuCall& call) {
  const auto& args = call.args<LayerNormArgs>();
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
  return {
      .phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = sizeof(float) * call.input(0).shape.columns()};
}

}  // namespace

extern const CpuKernel layer_norm_simd{fits_row_arguments, work, write_arguments<layer_norm_arguments>,
                                       [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
