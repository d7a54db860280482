// A block reduces one row.
#include "ops/reduce/reduce_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(reduce) {
  using namespace shunt;
  const auto& args = arguments_of<ReduceArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint32_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const std::uint64_t b_begin = row_offset(args.x.extents, args.b_strides, row);
  const auto element = [&](std::uint64_t column) {
    const float x = load(args.x.dtype, input_of<void>(call, 0), begin + column * args.x.strides[3]);
    if (args.kind != kReduceDot) return x;
    return x * load(args.b_dtype, input_of<void>(call, 1), b_begin + column * args.b_strides[3]);
  };
  float result = args.kind == kReduceMax ? largest_of_columns(columns, element) : sum_of_columns(columns, element);
  if (args.kind == kReduceMean) result /= static_cast<float>(columns);
  if (lane() == 0) store(args.x.dtype, output_of<void>(call), row, result);
}
