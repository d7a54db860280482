#include "ops/resize/resize.h"

#include <fmt/format.h>

#include "ops/elements.h"
#include "ops/images.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Shape& size = attributes.shape(Attr::size);
  SHUNT_TRY(need_images(x));
  SHUNT_TRY(need_pair("size", size));
  if (x.shape[2] == 0 || x.shape[3] == 0) return invalid(fmt::format("x {} has no pixels", text_of(x)));
  return value(x.dtype, Shape{x.shape[0], x.shape[1], size[0], size[1]}, x.extent);
}

Cost cost_of(const OpCall& call) {
  const double written = bytes_of(*call.output);
  return {.flops = 8.0 * static_cast<double>(call.output->shape.elements()),
          .bytes_read = bytes_of(call.input(0)),
          .bytes_written = written};
}

void make_sample(SampleBuilder& sample) {
  const SampleBuilder::Request x = pick_images(sample, 3);
  sample.set(Attr::size, sample.pick({Shape{18, 24}, Shape{1, 1}, Shape{4, 50}, Shape{13, 5}}));
  sample.add(x);
}

void make_bench(BenchBuilder& bench) {
  add_bench_image(bench);
  bench.set(Attr::size, Shape{2 * kBenchPixels, 2 * kBenchPixels});
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

double mixed(double a, double b, double share) { return share == 0 ? a : a + (b - a) * share; }

int run(const CpuCall& call) {
  const auto& args = call.args<ResizeArgs>();
  const std::uint64_t channels = args.x.extents[1];
  const std::uint64_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), *call.parameters);
  const Range rows = share_of(images * channels * args.size[0], call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const std::uint64_t plane = row / args.size[0];
    const std::uint64_t begin = plane / channels * args.x.strides[0] + plane % channels * args.x.strides[1];
    const Between y = resize_place(args, 0, row % args.size[0]);
    const auto pixel = [&](std::uint64_t line, std::uint64_t column) {
      return load_element(static_cast<DType>(args.x.dtype), call.inputs[0],
                          begin + line * args.x.strides[2] + column * args.x.strides[3]);
    };
    for (std::uint64_t column = 0; column < args.size[1]; ++column) {
      const Between x = resize_place(args, 1, column);
      const double above = mixed(pixel(y.first, x.first), pixel(y.first, x.second), x.share);
      const double below = mixed(pixel(y.second, x.first), pixel(y.second, x.second), x.share);
      store_element(static_cast<DType>(args.x.dtype), call.output, row * args.size[1] + column,
                    mixed(above, below, y.share));
    }
  }
  return 0;
}

}  // namespace

ResizeArgs resize_arguments(const OpCall& call) {
  ResizeArgs args;
  args.x = strided(call.input(0));
  args.is_linear = call.op == Op::resize_bilinear ? 1 : 0;
  for (std::size_t axis = 0; axis < 2; ++axis) args.size[axis] = call.output->shape[2 + axis];
  return args;
}

extern const CpuKernel resize_scalar{fits_arguments, work, write_arguments<resize_arguments>, run};

extern const OpRule resize_rule{.shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
