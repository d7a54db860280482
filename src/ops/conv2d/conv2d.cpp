#include "ops/conv2d/conv2d.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/elements.h"
#include "ops/images.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  const std::uint32_t groups = attributes.u32(Attr::groups);
  SHUNT_TRY(need_images(x));
  SHUNT_TRY(need_floating("weight", weight));
  if (weight.shape.rank() != 4)
    return invalid(fmt::format("weight must be [filters, channels, height, width], is {}", text_of(weight)));
  const std::uint32_t filters = weight.shape[0];
  if (groups == 0 || filters % groups != 0 || std::uint64_t{weight.shape[1]} * groups != x.shape[1])
    return invalid(
        fmt::format("{} groups do not divide the channels of x {} and weight {}", groups, text_of(x), text_of(weight)));
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    SHUNT_TRY(need_floating("bias", *inputs[2]));
    if (inputs[2]->shape != Shape{filters})
      return invalid(fmt::format("bias {} must have one element for each filter of weight {}", text_of(*inputs[2]),
                                 text_of(weight)));
  }
  SHUNT_TRY_ASSIGN(Shape shape, moved_over(x, Shape{weight.shape[2], weight.shape[3]}, attributes,
                                           attributes.shape(Attr::dilation)));
  shape.set(1, filters);
  return value(x.dtype, shape, x.extent);
}

Cost cost_of(const OpCall& call) {
  const Operand& weight = call.input(1);
  const double products = weight.shape[0] == 0 ? 0 : static_cast<double>(weight.shape.elements()) / weight.shape[0];
  return {.flops = 2.0 * static_cast<double>(call.output->shape.elements()) * products,
          .bytes_read = bytes_of(call.input(0)) + bytes_of(weight),
          .bytes_written = bytes_of(*call.output)};
}

void make_sample(SampleBuilder& sample) {
  const std::uint32_t groups = sample.pick({1U, 2U, 6U});
  const SampleBuilder::Request x = pick_images(sample, 6);
  const DType dtype = sample.pick_floating();
  const Shape kernel = sample.pick({Shape{3, 3}, Shape{1, 1}, Shape{2, 3}});
  const std::uint32_t filters = sample.pick({6U, 12U});
  const bool has_bias = sample.pick({false, true});
  set_window(sample);
  sample.set(Attr::dilation, sample.pick({Shape{1, 1}, Shape{2, 1}}));
  sample.set(Attr::groups, groups);
  sample.add(x);
  sample.add({.dtype = dtype, .shape = {filters, 6 / groups, kernel[0], kernel[1]}, .kind = TensorKind::weight});
  if (has_bias)
    sample.add({.shape = {filters}, .kind = TensorKind::weight});
  else
    sample.add_absent();
}

void make_bench(BenchBuilder& bench) {
  add_bench_image(bench);
  bench.add(BenchBuilder::weight(DType::F32, {kBenchChannels, kBenchChannels, 3, 3}));
  bench.set(Attr::padding, Shape{1, 1});
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

// Computes one element of the result.
double convolved(const Conv2dArgs& args, const CpuCall& call, std::uint64_t image, std::uint64_t filter,
                 std::uint64_t y, std::uint64_t x) {
  const std::uint64_t first_channel = filter / (args.filters / args.groups) * args.channels;
  double sum = 0;
  if (args.has_bias != 0)
    sum = load_element(static_cast<DType>(args.bias_dtype), call.inputs[2], filter * args.bias_stride);
  for (std::uint64_t channel = 0; channel < args.channels; ++channel)
    for (std::uint64_t i = 0; i < args.kernel[0]; ++i) {
      // Before the first row the difference wraps around to beyond the last.
      const std::uint64_t row = y * args.stride[0] + i * args.dilation[0] - args.padding[0];
      if (row >= args.x.extents[2]) continue;
      for (std::uint64_t j = 0; j < args.kernel[1]; ++j) {
        const std::uint64_t column = x * args.stride[1] + j * args.dilation[1] - args.padding[1];
        if (column >= args.x.extents[3]) continue;
        const std::uint64_t at = image * args.x.strides[0] + (first_channel + channel) * args.x.strides[1] +
                                 row * args.x.strides[2] + column * args.x.strides[3];
        const std::uint64_t weight = filter * args.weight_strides[0] + channel * args.weight_strides[1] +
                                     i * args.weight_strides[2] + j * args.weight_strides[3];
        sum += load_element(static_cast<DType>(args.x.dtype), call.inputs[0], at) *
               load_element(static_cast<DType>(args.weight_dtype), call.inputs[1], weight);
      }
    }
  return sum;
}

int run(const CpuCall& call) {
  const auto& args = call.args<Conv2dArgs>();
  const std::uint64_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), *call.parameters);
  const std::uint64_t height = args.places[0];
  const std::uint64_t width = args.places[1];
  const Range rows = share_of(images * args.filters * height, call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row)
    for (std::uint64_t x = 0; x < width; ++x)
      store_element(static_cast<DType>(args.x.dtype), call.output, row * width + x,
                    convolved(args, call, row / height / args.filters, row / height % args.filters, row % height, x));
  return 0;
}

}  // namespace

Conv2dArgs conv2d_arguments(const OpCall& call) {
  const Operand& weight = call.input(1);
  const Shape kernel{weight.shape[2], weight.shape[3]};
  Conv2dArgs args;
  args.x = strided(call.input(0));
  for (std::size_t axis = 0; axis < 4; ++axis)
    args.weight_strides[axis] = static_cast<std::uint32_t>(weight.strides[axis]);
  args.filters = weight.shape[0];
  args.channels = weight.shape[1];
  args.groups = call.attributes->u32(Attr::groups);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const WindowAxis window = window_axis(axis, kernel, *call.attributes, call.attributes->shape(Attr::dilation));
    args.places[axis] = call.output->shape[2 + axis];
    args.kernel[axis] = window.kernel;
    args.stride[axis] = window.stride;
    args.dilation[axis] = window.dilation;
    args.padding[axis] = window.before;
  }
  args.weight_dtype = static_cast<std::uint32_t>(weight.dtype);
  if (call.has_input(2)) {
    args.has_bias = 1;
    args.bias_dtype = static_cast<std::uint32_t>(call.input(2).dtype);
    args.bias_stride = static_cast<std::uint32_t>(call.input(2).strides[0]);
  }
  return args;
}

extern const CpuKernel conv2d_scalar{fits_arguments, work, write_arguments<conv2d_arguments>, run};

extern const OpRule conv2d_rule{.shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
