// A thread computes one element of the result.
#include "ops/pool2d/pool2d_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(pool2d) {
  using namespace shunt;
  const auto& args = arguments_of<Pool2dArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.places[1];
  const std::uint64_t plane = row / args.places[0];
  const std::uint64_t channels = args.x.extents[1];
  const std::uint32_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), parameters_of(call));
  if (plane >= images * channels) return;
  const std::uint64_t begin = plane / channels * args.x.strides[0] + plane % channels * args.x.strides[1];
  const PoolRange lines = pool_range(args, 0, row % args.places[0]);
  const PoolRange columns = pool_range(args, 1, index % args.places[1]);
  float sum = 0.0F;
  float largest = kernel_math::float_of(0xFF800000U);
  for (std::uint64_t line = lines.begin; line < lines.end; ++line)
    for (std::uint64_t column = columns.begin; column < columns.end; ++column) {
      const float value =
          load(args.x.dtype, input_of<void>(call, 0), begin + line * args.x.strides[2] + column * args.x.strides[3]);
      sum += value;
      largest = kernel_math::max(largest, value);
    }
  const auto count = static_cast<float>((lines.end - lines.begin) * (columns.end - columns.begin));
  store(args.x.dtype, output_of<void>(call), index, args.is_max != 0 ? largest : sum / count);
}
