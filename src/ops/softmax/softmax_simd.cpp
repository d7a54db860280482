#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"
#include "ops/softmax/softmax.h"

#ifndef SHUNT_OPS_SOFTMAX_ONCE
#define SHUNT_OPS_SOFTMAX_ONCE
namespace shunt {
namespace {

// One share's result for its columns of one row; the sum is of exp(score - largest).
struct SoftmaxPart {
  double sum = 0;
  float largest = -std::numeric_limits<float>::infinity();
  std::uint32_t reserved = 0;
};

// If there are few rows, each share has some columns of each, and the second phase joins the parts.
bool cuts_columns(std::uint64_t rows, std::uint64_t columns, std::uint32_t shares) {
  return rows < shares && columns >= 2048;
}

}  // namespace
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax/softmax_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Computes out = scale x + mask and returns the largest number in it, ignoring NaN. `mask` may be null.
float score_row(const float* x, float scale, const float* mask, std::size_t elements, float* out) {
  const Floats d;
  const auto scales = hn::Set(d, scale);
  auto largest = hn::Set(d, kLowest);
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    auto score = hn::Mul(hn::LoadU(d, x + i), scales);
    if (mask != nullptr) score = hn::Add(score, hn::LoadU(d, mask + i));
    largest = hn::IfThenElse(hn::Gt(score, largest), score, largest);
    hn::StoreU(score, d, out + i);
  }
  float result = math::largest_lane(d, largest);
  for (; i < elements; ++i) {
    out[i] = mask == nullptr ? x[i] * scale : x[i] * scale + mask[i];
    if (out[i] > result) result = out[i];
  }
  return result;
}

// Computes x = exp(x - shift) in place, for shift >= x. Returns the sum, in which short stretches are summed in F32.
double exp_row(float shift, std::size_t elements, float* x) {
  constexpr std::size_t kStretch = 1024;
  const Floats d;
  const auto shifts = hn::Set(d, shift);
  double total = 0;
  for (std::size_t begin = 0; begin < elements; begin += kStretch) {
    const std::size_t end = std::min(begin + kStretch, elements);
    auto sum = hn::Zero(d);
    std::size_t i = begin;
    for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) {
      const auto value = math::exp_below_zero(d, hn::Sub(hn::LoadU(d, x + i), shifts));
      sum = hn::Add(sum, value);
      hn::StoreU(value, d, x + i);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; i < end; ++i) {
      x[i] = std::exp(x[i] - shift);
      total += static_cast<double>(x[i]);
    }
  }
  return total;
}

void multiply_row(float factor, std::size_t elements, float* x) {
  const Floats d;
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  for (; i < elements; ++i) x[i] *= factor;
}

// Scores that are all -infinity are not shifted, so that they become zeros.
float shift_of(float largest) { return largest == kLowest ? 0.0F : largest; }
float factor_of(double sum) { return sum == 0 ? 0.0F : static_cast<float>(1.0 / sum); }

// Writes exp(score - largest) of the columns of `part` to `out`.
SoftmaxPart exp_part(const SoftmaxArgs& args, const CpuCall& call, std::uint64_t row, Range part, float* out) {
  const std::size_t elements = part.end - part.begin;
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
  const float* x =
      floats_of(static_cast<DType>(args.x.dtype), call.inputs[0],
                row_offset(args.x, row) + part.begin * args.x.strides[3], args.x.strides[3], elements, buffer);
  const float* mask = nullptr;
  if (args.has_mask != 0)
    mask = floats_of(static_cast<DType>(args.mask_dtype), call.inputs[1],
                     row_offset(args.x.extents, args.mask_strides, row) + part.begin * args.mask_strides[3],
                     args.mask_strides[3], elements, buffer + args.x.extents[3]);
  SoftmaxPart result;
  result.largest = score_row(x, args.scale, mask, elements, out);
  result.sum = exp_row(shift_of(result.largest), elements, out);
  return result;
}

void run_rows(const SoftmaxArgs& args, const CpuCall& call) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  const Range rows = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    float* const out = dtype == DType::F32 ? call.out<float>() + row * columns
                                           : reinterpret_cast<float*>(call.thread_scratch) + 2 * columns;
    const SoftmaxPart whole = exp_part(args, call, row, {0, columns}, out);
    multiply_row(factor_of(whole.sum), columns, out);
    if (dtype != DType::F32) narrow_row(dtype, out, columns, call.output + row * columns * sizeof(std::uint16_t));
  }
}

// Phase 0 leaves each part's exponentials in the shared scratch; phase 1 rescales them to a common scale.
void run_columns(const SoftmaxArgs& args, const CpuCall& call) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t rows = valid_row_count(args.x, *call.parameters);
  const Range part = share_of(columns, call.share, call.shares, 64);
  auto* const parts = reinterpret_cast<SoftmaxPart*>(call.shared_scratch);
  auto* const values = reinterpret_cast<float*>(parts + row_count(args.x) * call.shares);
  for (std::uint64_t row = 0; row < rows; ++row) {
    float* const own = values + row * columns + part.begin;
    SoftmaxPart* const found = parts + row * call.shares;
    if (call.phase == 0) {
      found[call.share] = exp_part(args, call, row, part, own);
      continue;
    }
    float largest = kLowest;
    for (std::uint32_t i = 0; i < call.shares; ++i) largest = std::max(largest, found[i].largest);
    double sum = 0;
    for (std::uint32_t i = 0; i < call.shares; ++i)
      sum += found[i].sum *
             std::exp(static_cast<double>(shift_of(found[i].largest)) - static_cast<double>(shift_of(largest)));
    const float rescale = std::exp(shift_of(found[call.share].largest) - shift_of(largest));
    multiply_row(factor_of(sum) * rescale, part.end - part.begin, own);
    narrow_row(
        dtype, own, part.end - part.begin,
        call.output + (row * columns + part.begin) * (dtype == DType::F32 ? sizeof(float) : sizeof(std::uint16_t)));
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<SoftmaxArgs>();
  if (cuts_columns(row_count(args.x), args.x.extents[3], call.shares))
    run_columns(args, call);
  else
    run_rows(args, call);
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

CpuWork work(const OpCall& call, std::uint32_t shares) {
  const Shape& shape = call.input(0).shape;
  const std::uint64_t row_bytes = shape.columns() * sizeof(float);
  CpuWork work{.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = 3 * row_bytes};
  if (cuts_columns(shape.rows(), shape.columns(), shares)) {
    work.phases = 2;
    work.shared_scratch_bytes = shape.rows() * (shares * sizeof(SoftmaxPart) + row_bytes);
  }
  return work;
}

}  // namespace

extern const CpuKernel softmax_simd{fits_row_arguments, work, write_arguments<softmax_arguments>,
                                    [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
