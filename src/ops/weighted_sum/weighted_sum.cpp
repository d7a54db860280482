#include "ops/weighted_sum/weighted_sum.h"

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void sum_row(const WeightedSumArgs& args, const CpuCall& call, std::uint64_t row) {
  const DType dtype = static_cast<DType>(args.x_dtype);
  const std::uint64_t weights = row_offset(args.weights, row);
  const std::uint64_t begin = row_offset(args.weights.extents, args.x_strides, row);
  for (std::uint64_t column = 0; column < args.columns; ++column) {
    double sum = 0;
    for (std::uint64_t j = 0; j < args.weights.extents[3]; ++j)
      sum +=
          load_element(static_cast<DType>(args.weights.dtype), call.inputs[1], weights + j * args.weights.strides[3]) *
          load_element(dtype, call.inputs[0], begin + j * args.x_strides[3] + column * args.column_stride);
    store_element(dtype, call.output, row * args.columns + column, sum);
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<WeightedSumArgs>();
  const Range share = share_of(valid_row_count(args.weights, *call.parameters), call.thread, call.threads);
  for (std::uint64_t row = share.begin; row < share.end; ++row) sum_row(args, call, row);
  return 0;
}

}  // namespace

WeightedSumArgs weighted_sum_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  // The extent of the result counts, whatever that of the weights says.
  Operand weights = call.input(1);
  weights.extent = x.extent;
  WeightedSumArgs args;
  args.weights = strided(weights);
  for (std::size_t axis = 0; axis + 1 < x.shape.rank(); ++axis)
    args.x_strides[args.weights.first_axis + axis] = static_cast<std::uint32_t>(x.strides[axis]);
  args.columns = x.shape.columns();
  args.column_stride = static_cast<std::uint32_t>(x.strides[x.shape.rank() - 1]);
  args.x_dtype = static_cast<std::uint32_t>(x.dtype);
  return args;
}

extern const CpuKernel weighted_sum_scalar{fits_arguments, work, write_arguments<weighted_sum_arguments>, run};

}  // namespace shunt
