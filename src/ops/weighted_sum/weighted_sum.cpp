#include "ops/weighted_sum/weighted_sum.h"

#include <fmt/format.h>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weights = *inputs[1];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_floating("weights", weights));
  const std::uint32_t rank = x.shape.rank();
  bool alike = rank >= 2 && weights.shape.rank() + 1 == rank;
  for (std::size_t axis = 0; alike && axis + 1 < rank; ++axis) alike = x.shape[axis] == weights.shape[axis];
  if (!alike) return invalid(fmt::format("weights {} must be one for each row of x {}", text_of(weights), text_of(x)));
  if (rank == 2 && x.extent != Extent::fixed)
    return invalid(fmt::format("axis 0 of x {} is a bucket and cannot be summed over", text_of(x)));
  Shape shape;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) shape.append(x.shape[axis]);
  shape.append(x.shape.columns());
  return value(x.dtype, shape, x.extent);
}

void make_sample(SampleBuilder& sample) {
  const DType dtype = sample.pick_floating();
  const std::uint32_t columns = sample.pick_columns(dtype);
  const Entries entries = sample.pick_entries();
  const std::uint32_t count = sample.pick({4U, 1U, 9U});
  const View view = sample.pick_view();
  const DType weights = sample.pick_floating();
  const View weights_view = sample.pick_view();
  const bool has_middle_axis = sample.pick({false, false, true});
  Shape rows{entries.count, count};
  if (has_middle_axis) rows = Shape{entries.count, 2, count};
  Shape x = rows;
  x.append(columns);
  sample.add({.dtype = dtype, .shape = x, .extent = entries.extent, .view = view});
  sample.add({.dtype = weights, .shape = rows, .extent = entries.extent, .view = weights_view});
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), kBenchUsedExperts, bench.sizes().embedding});
  bench.add_values({bench.rows(), kBenchUsedExperts});
}

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
  const Range share = share_of(valid_row_count(args.weights, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) sum_row(args, call, row);
  return 0;
}

}  // namespace

WeightedSumArgs weighted_sum_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  // The result's extent applies, not that of the weights.
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

extern const OpRule weighted_sum_rule{.shape = result_shape, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
