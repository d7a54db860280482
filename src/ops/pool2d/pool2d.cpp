#include "ops/pool2d/pool2d.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/images.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_images(x));
  const Shape& kernel = attributes.shape(Attr::kernel);
  SHUNT_TRY_ASSIGN(const Shape shape, moved_over(x, kernel, attributes, Shape{1, 1}));
  // The kernel must cover at least one element of x at every position.
  if (x.shape[2] == 0 || x.shape[3] == 0) return invalid(fmt::format("x {} has no pixels", text_of(x)));
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const WindowAxis window = window_axis(axis, kernel, attributes, Shape{1, 1});
    if (window.before >= window.kernel || window.after >= window.kernel)
      return invalid(fmt::format("padding {} must be less than the kernel {}",
                                 to_string(attributes.shape(Attr::padding)), to_string(kernel)));
  }
  return value(x.dtype, shape, x.extent);
}

Cost cost_of(const OpCall& call) {
  const Shape& kernel = call.attributes->shape(Attr::kernel);
  return {.flops = static_cast<double>(call.output->shape.elements()) * kernel[0] * kernel[1],
          .bytes_read = bytes_of(call.input(0)),
          .bytes_written = bytes_of(*call.output)};
}

void make_sample(SampleBuilder& sample) {
  const SampleBuilder::Request x = pick_images(sample, 3);
  sample.set(Attr::kernel, sample.pick({Shape{2, 2}, Shape{3, 4}}));
  set_window(sample);
  sample.add(x);
}

void make_bench(BenchBuilder& bench) {
  add_bench_image(bench);
  bench.set(Attr::kernel, Shape{2, 2});
  bench.set(Attr::stride, Shape{2, 2});
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

// `begin` is the first element of the plane of x.
double pooled(const Pool2dArgs& args, const CpuCall& call, std::uint64_t begin, PoolRange rows, PoolRange columns) {
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::uint64_t row = rows.begin; row < rows.end; ++row)
    for (std::uint64_t column = columns.begin; column < columns.end; ++column) {
      const double value = load_element(static_cast<DType>(args.x.dtype), call.inputs[0],
                                        begin + row * args.x.strides[2] + column * args.x.strides[3]);
      sum += value;
      if (value > largest || std::isnan(value)) largest = value;
      if (std::isnan(largest)) return largest;
    }
  if (args.is_max != 0) return largest;
  return sum / static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
}

int run(const CpuCall& call) {
  const auto& args = call.args<Pool2dArgs>();
  const std::uint64_t channels = args.x.extents[1];
  const std::uint64_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), *call.parameters);
  const Range rows = share_of(images * channels * args.places[0], call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const std::uint64_t plane = row / args.places[0];
    const std::uint64_t begin = plane / channels * args.x.strides[0] + plane % channels * args.x.strides[1];
    for (std::uint64_t x = 0; x < args.places[1]; ++x)
      store_element(static_cast<DType>(args.x.dtype), call.output, row * args.places[1] + x,
                    pooled(args, call, begin, pool_range(args, 0, row % args.places[0]), pool_range(args, 1, x)));
  }
  return 0;
}

}  // namespace

Pool2dArgs pool2d_arguments(const OpCall& call) {
  Pool2dArgs args;
  args.x = strided(call.input(0));
  args.is_max = call.op == Op::max_pool2d ? 1 : 0;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const WindowAxis window = window_axis(axis, call.attributes->shape(Attr::kernel), *call.attributes, Shape{1, 1});
    args.places[axis] = call.output->shape[2 + axis];
    args.kernel[axis] = window.kernel;
    args.stride[axis] = window.stride;
    args.padding[axis] = window.before;
  }
  return args;
}

extern const CpuKernel pool2d_scalar{fits_arguments, work, write_arguments<pool2d_arguments>, run};

extern const OpRule pool2d_rule{.shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
