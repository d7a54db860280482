#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"
#include "ops/top_k/top_k.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/top_k_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Returns the first index of the largest number, or `elements` if there is none.
std::size_t place_of_largest(const float* x, std::size_t elements) {
  const Floats d;
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, x + i);
    largest = hn::IfThenElse(hn::Gt(value, largest), value, largest);
  }
  float value = math::largest_lane(d, largest);
  for (; i < elements; ++i) value = x[i] > value ? x[i] : value;
  i = 0;
  while (i < whole_vectors(elements) && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), hn::Set(d, value))))
    i += hn::Lanes(d);
  while (i < elements && x[i] != value) ++i;
  return i;
}

// Each result is replaced by NaN in the thread's copy of the row, so that the next one is found. Once only NaN is left,
// the elements that were NaN follow by index.
void find_row(const TopKArgs& args, const CpuCall& call, std::uint64_t row) {
  const std::size_t columns = args.x.extents[3];
  float* const left = reinterpret_cast<float*>(call.thread_scratch);
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t begin = row_offset(args.x, row);
  const float* x = floats_of(dtype, call.inputs[0], begin, args.x.strides[3], columns, left);
  if (x != left) std::memcpy(left, x, columns * sizeof(float));
  std::int32_t* const out = call.out<std::int32_t>() + row * args.k;
  std::uint32_t found = 0;
  for (; found < args.k; ++found) {
    const std::size_t place = place_of_largest(left, columns);
    if (place == columns) break;
    left[place] = std::numeric_limits<float>::quiet_NaN();
    out[found] = static_cast<std::int32_t>(place);
  }
  for (std::size_t i = 0; i < columns && found < args.k; ++i)
    if (std::isnan(load_element(dtype, call.inputs[0], begin + i * args.x.strides[3])))
      out[found++] = static_cast<std::int32_t>(i);
}

int run(const CpuCall& call) {
  const auto& args = call.args<TopKArgs>();
  const Range rows = share_of(valid_row_count(args.x, *call.parameters), call.thread, call.threads);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) find_row(args, call, row);
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

extern const CpuKernel top_k_simd{fits_row_arguments, work, write_arguments<top_k_arguments>,
                                  [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
