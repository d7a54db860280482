// A thread computes one element of the result.
#include "ops/rotary/rotary.cuh"

SHUNT_KERNEL(rotary) {
  using namespace shunt;
  const auto& args = arguments_of<RotaryArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.x.extents[3];
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::int32_t position = input_of<std::int32_t>(call, 1)[row / args.x.extents[2] * args.position_stride];
  const float* factors = args.has_factors != 0 ? input_of<float>(call, 2) : nullptr;
  const float value = rotated(args, input_of<void>(call, 0), row_offset(args.x, row),
                              static_cast<std::uint32_t>(index % args.x.extents[3]), position,
                              reinterpret_cast<const std::uint32_t*>(call->constants), factors);
  store(args.x.dtype, output_of<void>(call), index, value);
}
