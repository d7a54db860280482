// A thread finds the place of one column of a row: before it stand as many columns as precede it.
#include "ops/argsort/argsort_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

// Whether a value stands before another: the smaller first, of equals the lower index, NaN last.
SHUNT_FUNCTION bool precedes(float value, std::uint32_t place, float other, std::uint32_t its) {
  const bool is_number = value == value;
  if (is_number != (other == other)) return is_number;
  return value < other || (!(other < value) && place < its);
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(argsort) {
  using namespace shunt;
  const auto& args = arguments_of<ArgsortArgs>(call);
  const std::uint32_t columns = args.x.extents[3];
  const std::uint64_t row = thread_index() / columns;
  const auto column = static_cast<std::uint32_t>(thread_index() % columns);
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint64_t begin = row_offset(args.x, row);
  const auto at = [&](std::uint32_t i) {
    return load(args.x.dtype, input_of<void>(call, 0), begin + std::uint64_t{i} * args.x.strides[3]);
  };
  const float value = at(column);
  std::uint32_t before = 0;
  for (std::uint32_t other = 0; other < columns; ++other)
    if (precedes(at(other), other, value, column)) ++before;
  output_of<std::int32_t>(call)[row * columns + before] = static_cast<std::int32_t>(column);
}
