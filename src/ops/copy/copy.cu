// A thread copies one element.
#include "ops/copy/copy_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

// Towards zero, at most the largest of its sign; NaN becomes 0.
SHUNT_FUNCTION std::int32_t whole(float value) {
  if (value != value) return 0;
  if (value >= 2147483648.0F) return 2147483647;
  if (value <= -2147483648.0F) return -2147483647 - 1;
  return static_cast<std::int32_t>(value);
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(copy) {
  using namespace shunt;
  const auto& args = arguments_of<CopyArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.x.extents[3];
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint64_t at = row_offset(args.x, row) + index % args.x.extents[3] * args.x.strides[3];
  if (args.x.dtype == args.to) {
    if (row_bytes(args.to, 1) == 2)
      output_of<std::uint16_t>(call)[index] = input_of<std::uint16_t>(call, 0)[at];
    else
      output_of<std::uint32_t>(call)[index] = input_of<std::uint32_t>(call, 0)[at];
    return;
  }
  const float value = load(args.x.dtype, input_of<void>(call, 0), at);
  if (args.to == dtype::I32)
    output_of<std::int32_t>(call)[index] = whole(value);
  else
    store(args.to, output_of<void>(call), index, value);
}
