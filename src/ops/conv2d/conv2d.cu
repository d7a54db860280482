// A thread computes one place of the result for up to four filters of a group, which read the same elements of x.
#include "ops/conv2d/conv2d_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(conv2d) {
  using namespace shunt;
  const auto& args = arguments_of<Conv2dArgs>(call);
  const std::uint64_t places = std::uint64_t{args.places[0]} * args.places[1];
  const std::uint64_t place = thread_index() % places;
  const std::uint64_t share = thread_index() / places;
  const std::uint64_t shares = conv_shares(args);  // of a group
  const std::uint64_t image = share / shares / args.groups;
  if (image >= valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), parameters_of(call))) return;
  const std::uint64_t number = share / shares % args.groups;
  const std::uint64_t of_group = args.filters / args.groups;
  const std::uint64_t first = number * of_group + share % shares * kConvFilters;
  const std::uint64_t end = (number + 1) * of_group;
  float sums[kConvFilters];
  for (std::uint32_t f = 0; f < kConvFilters; ++f)
    sums[f] = args.has_bias != 0 && first + f < end
                  ? load(args.bias_dtype, input_of<void>(call, 2), (first + f) * args.bias_stride)
                  : 0.0F;
  for (std::uint64_t channel = 0; channel < args.channels; ++channel) {
    const std::uint64_t plane = image * args.x.strides[0] + (number * args.channels + channel) * args.x.strides[1];
    for (std::uint64_t i = 0; i < args.kernel[0]; ++i) {
      // Before the first row the difference wraps around to beyond the last.
      const std::uint64_t row = place / args.places[1] * args.stride[0] + i * args.dilation[0] - args.padding[0];
      if (row >= args.x.extents[2]) continue;
      for (std::uint64_t j = 0; j < args.kernel[1]; ++j) {
        const std::uint64_t column = place % args.places[1] * args.stride[1] + j * args.dilation[1] - args.padding[1];
        if (column >= args.x.extents[3]) continue;
        const float x =
            load(args.x.dtype, input_of<void>(call, 0), plane + row * args.x.strides[2] + column * args.x.strides[3]);
        const std::uint64_t weight =
            channel * args.weight_strides[1] + i * args.weight_strides[2] + j * args.weight_strides[3];
        for (std::uint32_t f = 0; f < kConvFilters; ++f)
          if (first + f < end)
            sums[f] +=
                x * load(args.weight_dtype, input_of<void>(call, 1), (first + f) * args.weight_strides[0] + weight);
      }
    }
  }
  for (std::uint32_t f = 0; f < kConvFilters; ++f)
    if (first + f < end)
      store(args.x.dtype, output_of<void>(call), (image * args.filters + first + f) * places + place, sums[f]);
}
