// A block normalizes one row.
#include "ops/layer_norm/layer_norm_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(layer_norm) {
  using namespace shunt;
  const auto& args = arguments_of<LayerNormArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint32_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const auto x = [&](std::uint64_t column) {
    return load(args.x.dtype, input_of<void>(call, 0), begin + column * args.x.strides[3]);
  };
  const float mean = sum_of_columns(columns, x) / static_cast<float>(columns);
  // The mean is rounded; what is left of it counts where the elements are almost equal.
  const float rest =
      sum_of_columns(columns, [&](std::uint64_t column) { return x(column) - mean; }) / static_cast<float>(columns);
  const auto distance = [&](std::uint64_t column) { return (x(column) - mean) - rest; };
  const float squares = sum_of_columns(columns, [&](std::uint64_t column) {
    const float each = distance(column);
    return each * each;
  });
  const float factor = 1.0F / kernel_math::sqrt(squares / static_cast<float>(columns) + args.epsilon);
  for (std::uint64_t column = lane(); column < columns; column += kGroup)
    store(args.x.dtype, output_of<void>(call), row * columns + column, distance(column) * factor);
}
