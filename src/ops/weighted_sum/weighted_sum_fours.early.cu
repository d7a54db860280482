// Rows of F32. A thread computes four elements of a row of the result.
#include "ops/weighted_sum/weighted_sum_args.h"

#include "ops/early.cuh"

SHUNT_BOUNDED_KERNEL(weighted_sum_fours, shunt::kWeightedSumFoursThreads, 4) {
  using namespace shunt;
  let_next_kernel_begin();
  constexpr std::uint32_t kStretch = 64;  // products summed before they are added to the rest, for precision
  constexpr std::uint32_t kTogether = 8;  // rows of x read before they are used
  const auto& args = arguments_of<WeightedSumArgs>(call);
  const std::uint64_t first = (group() * kWeightedSumFoursThreads + lane()) * 4U;
  const std::uint64_t row = first / args.columns;
  const bool exists = row < valid_row_count(args.weights, parameters_of(call));
  wait_for_earlier_kernels();
  if (!exists) return;
  const float* const weights = input_of<float>(call, 1) + row_offset(args.weights, row);
  const float* const x =
      input_of<float>(call, 0) + row_offset(args.weights.extents, args.x_strides, row) + first % args.columns;
  const std::uint32_t products = args.weights.extents[3];
  FourFloats sum{{0.0F, 0.0F, 0.0F, 0.0F}};
  FourFloats stretch = sum;
  for (std::uint32_t begin = 0; begin < products; begin += kTogether) {
    FourFloats held[kTogether];
    float factors[kTogether];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      const std::uint64_t j = begin + i < products ? begin + i : begin;
      const float* const from = x + j * args.x_strides[3];
      held[i] = read_four(from, is_in_sixteens(from));
      factors[i] = weights[j * args.weights.strides[3]];
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      if (begin + i >= products) break;
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) stretch.values[e] += factors[i] * held[i].values[e];
    }
    if ((begin + kTogether) % kStretch != 0 && begin + kTogether < products) continue;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] += stretch.values[e];
    stretch = {{0.0F, 0.0F, 0.0F, 0.0F}};
  }
  write_four(output_of<float>(call) + first, sum);
}
