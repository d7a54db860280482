// A block turns the scores of one row into shares.
#include "ops/softmax/softmax_args.h"

#include "ops/early.cuh"

SHUNT_KERNEL(softmax) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<SoftmaxArgs>(call);
  const std::uint64_t row = group();
  const bool exists = row < valid_row_count(args.x, parameters_of(call));
  const std::uint32_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const std::uint64_t mask_begin = row_offset(args.x.extents, args.mask_strides, row);
  wait_for_earlier_kernels();
  if (!exists) return;
  const auto score = [&](std::uint64_t column) {
    const float value = args.scale * load(args.x.dtype, input_of<void>(call, 0), begin + column * args.x.strides[3]);
    if (args.has_mask == 0) return value;
    return value + load(args.mask_dtype, input_of<void>(call, 1), mask_begin + column * args.mask_strides[3]);
  };
  const float largest = largest_of_columns(columns, score);
  // All shares are zero where all scores are minus infinity.
  const float shift = kernel_math::bits_of(largest) == 0xFF800000U ? 0.0F : largest;
  const auto power = [&](std::uint64_t column) { return kernel_math::exp(score(column) - shift); };
  const float sum = sum_of_columns(columns, power);
  for (std::uint64_t column = lane(); column < columns; column += kGroup)
    store(args.x.dtype, output_of<void>(call), row * columns + column, sum == 0.0F ? 0.0F : power(column) / sum);
}
