// A thread computes one element of the result.
#include "ops/resize/resize_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

SHUNT_FUNCTION float mixed(float a, float b, float share) { return share == 0.0F ? a : a + (b - a) * share; }

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(resize) {
  using namespace shunt;
  const auto& args = arguments_of<ResizeArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.size[1];
  const std::uint64_t plane = row / args.size[0];
  const std::uint64_t channels = args.x.extents[1];
  const std::uint32_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), parameters_of(call));
  if (plane >= images * channels) return;
  const std::uint64_t begin = plane / channels * args.x.strides[0] + plane % channels * args.x.strides[1];
  const Between y = resize_place(args, 0, row % args.size[0]);
  const Between x = resize_place(args, 1, index % args.size[1]);
  const auto line = [&](std::uint64_t number) {
    const std::uint64_t at = begin + number * args.x.strides[2];
    return mixed(load(args.x.dtype, input_of<void>(call, 0), at + x.first * args.x.strides[3]),
                 load(args.x.dtype, input_of<void>(call, 0), at + x.second * args.x.strides[3]),
                 static_cast<float>(x.share));
  };
  store(args.x.dtype, output_of<void>(call), index, mixed(line(y.first), line(y.second), static_cast<float>(y.share)));
}
