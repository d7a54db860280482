// A block normalizes one row.
#include "ops/norm/norm_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(norm) {
  using namespace shunt;
  const auto& args = arguments_of<NormArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint32_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const float sum = sum_of_columns(columns, [&](std::uint64_t column) {
    const float value = load(args.x.dtype, input_of<void>(call, 0), begin + column * args.x.strides[3]);
    return value * value;
  });
  const float factor = 1.0F / kernel_math::sqrt(sum / static_cast<float>(columns) + args.epsilon);
  const std::uint64_t weight_begin = row_offset(args.x.extents, args.weight_strides, row);
  for (std::uint32_t column = lane(); column < columns; column += kGroup) {
    float value =
        load(args.x.dtype, input_of<void>(call, 0), begin + std::uint64_t{column} * args.x.strides[3]) * factor;
    if (args.has_weight != 0)
      value *= load(args.weight_dtype, input_of<void>(call, 1),
                    weight_begin + std::uint64_t{column} * args.weight_strides[3]);
    store(args.x.dtype, output_of<void>(call), row * columns + column, value);
  }
}
