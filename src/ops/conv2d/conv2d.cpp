#include "ops/conv2d/conv2d.h"

#include <algorithm>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/window.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

// One element of the result.
double convolved(const Conv2dArgs& args, const CpuCall& call, std::uint64_t image, std::uint64_t filter,
                 std::uint64_t y, std::uint64_t x) {
  const std::uint64_t first_channel = filter / (args.filters / args.groups) * args.channels;
  double sum = 0;
  if (args.has_bias != 0)
    sum = load_element(static_cast<DType>(args.bias_dtype), call.inputs[2], filter * args.bias_stride);
  for (std::uint64_t channel = 0; channel < args.channels; ++channel)
    for (std::uint64_t i = 0; i < args.kernel[0]; ++i) {
      // Before the first row the difference wraps around and is beyond the last.
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
  const Range rows = share_of(images * args.filters * height, call.thread, call.threads);
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

}  // namespace shunt
