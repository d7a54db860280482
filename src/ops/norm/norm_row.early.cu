// A warp, or the whole block, normalizes a row of F32 numbers, which its threads keep in groups of four.
#include "ops/norm/norm_args.h"

#include "ops/early.cuh"

namespace shunt {
namespace {

// Returns the sum over the threads of a row.
template <std::uint32_t threads>
SHUNT_FUNCTION float sum_of_row(float value) {
  SHUNT_UNROLL
  for (std::uint32_t mask = 16; mask != 0; mask /= 2) value += from_lane(value, mask);
  if constexpr (threads == kNormRowThreads) {
    SHUNT_SHARED float parts[threads / 32];
    if (lane() % 32U == 0) parts[lane() / 32U] = value;
    sync();
    value = 0.0F;
    for (const float part : parts) value += part;
  }
  return value;
}

// Reads the factors of the thread's elements, which are 1 without a weight or a row.
template <std::uint32_t threads, std::uint32_t fours>
SHUNT_FUNCTION void read_weights(const CudaCall* call, std::uint64_t row, bool exists, FourFloats (&weights)[fours]) {
  const auto& args = arguments_of<NormArgs>(call);
  const float* const weight = input_of<float>(call, 1) + row_offset(args.x.extents, args.weight_strides, row);
  const bool in_sixteens = is_in_sixteens(weight);
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < fours; ++i) {
    const std::uint32_t column = (lane() % threads + i * threads) * 4U;
    weights[i] = {{1.0F, 1.0F, 1.0F, 1.0F}};
    if (exists && args.has_weight != 0 && column < args.x.extents[3])
      weights[i] = read_four(weight + column, in_sixteens);
  }
}

template <std::uint32_t threads, std::uint32_t fours>
SHUNT_FUNCTION void normalize(const CallOfBlock& of) {
  const CudaCall* const call = of.call;
  const auto& args = arguments_of<NormArgs>(call);
  const std::uint64_t row = std::uint64_t{of.block} * (kNormRowThreads / threads) + lane() / threads;
  let_next_kernel_begin();
  const bool exists = row < valid_row_count(args.x, parameters_of(call));
  const std::uint32_t columns = args.x.extents[3];
  const float* const x = input_of<float>(call, 0) + row_offset(args.x, row);
  wait_to_read(call, 1U << 1U);
  FourFloats weights[fours];
  read_weights<threads, fours>(call, row, exists, weights);
  wait_for_earlier_kernels();
  if (!exists) return;
  const bool x_in_sixteens = is_in_sixteens(x);
  FourFloats held[fours];
  float sum = 0.0F;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < fours; ++i) {
    const std::uint32_t column = (lane() % threads + i * threads) * 4U;
    held[i] = {{0.0F, 0.0F, 0.0F, 0.0F}};
    if (column < columns) held[i] = read_four(x + column, x_in_sixteens);
    SHUNT_UNROLL
    for (const float value : held[i].values) sum += value * value;
  }
  const float factor = 1.0F / kernel_math::sqrt(sum_of_row<threads>(sum) / static_cast<float>(columns) + args.epsilon);
  float* const out = output_of<float>(call) + row * columns;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < fours; ++i) {
    const std::uint32_t column = (lane() % threads + i * threads) * 4U;
    if (column >= columns) continue;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) held[i].values[e] *= factor * weights[i].values[e];
    write_four(out + column, held[i]);
  }
}

}  // namespace
}  // namespace shunt

#define SHUNT_NORM_ROW(threads, fours)                                                    \
  SHUNT_BOUNDED_KERNEL(norm_row_##threads##_##fours, shunt::kNormRowThreads, 2) {         \
    shunt::normalize<threads, fours>(shunt::call_of(call, launch_copies, launch_shares)); \
  }
SHUNT_NORM_ROW(32, 1)
SHUNT_NORM_ROW(32, 2)
SHUNT_NORM_ROW(32, 4)
SHUNT_NORM_ROW(256, 1)
SHUNT_NORM_ROW(256, 2)
SHUNT_NORM_ROW(256, 4)
SHUNT_NORM_ROW(256, 8)
