// A thread computes one element of the result.
#include "ops/weighted_sum/weighted_sum_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(weighted_sum) {
  using namespace shunt;
  constexpr std::uint32_t kStretch = 64;  // products summed before they are added to the rest, for precision
  const auto& args = arguments_of<WeightedSumArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.columns;
  if (row >= valid_row_count(args.weights, parameters_of(call))) return;
  const std::uint64_t weight = row_offset(args.weights, row);
  const std::uint64_t x =
      row_offset(args.weights.extents, args.x_strides, row) + index % args.columns * args.column_stride;
  const std::uint64_t products = args.weights.extents[3];
  float sum = 0.0F;
  for (std::uint64_t begin = 0; begin < products; begin += kStretch) {
    const std::uint64_t end = begin + kStretch < products ? begin + kStretch : products;
    float stretch = 0.0F;
    for (std::uint64_t j = begin; j < end; ++j)
      stretch += load(args.weights.dtype, input_of<void>(call, 1), weight + j * args.weights.strides[3]) *
                 load(args.x_dtype, input_of<void>(call, 0), x + j * args.x_strides[3]);
    sum += stretch;
  }
  store(args.x_dtype, output_of<void>(call), index, sum);
}
