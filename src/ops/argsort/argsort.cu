// A block sorts the indices of one row with a bitonic network whose comparators all point the same way. A row of any
// length is then sorted as if padded with elements that stay at its end (Batcher, 1968).
#include "ops/argsort/argsort_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

struct Row {
  const void* x;
  std::uint64_t begin;
  std::uint64_t stride;
  std::uint32_t dtype;
  std::uint32_t columns;
  std::int32_t* ids;
};

// Returns whether column a precedes column b: smaller values first, then lower indices, NaN last.
SHUNT_FUNCTION bool precedes(const Row& row, std::int32_t a, std::int32_t b) {
  const float first = load(row.dtype, row.x, row.begin + static_cast<std::uint32_t>(a) * row.stride);
  const float second = load(row.dtype, row.x, row.begin + static_cast<std::uint32_t>(b) * row.stride);
  const bool is_number = first == first;
  if (is_number != (second == second)) return is_number;
  return first < second || (!(second < first) && a < b);
}

// Sorts places i and i ^ mask for each i of the row.
SHUNT_FUNCTION void compare(const Row& row, std::uint32_t mask) {
  for (std::uint32_t i = lane(); i < row.columns; i += kGroup) {
    const std::uint32_t other = i ^ mask;
    if (other <= i || other >= row.columns || !precedes(row, row.ids[other], row.ids[i])) continue;
    const std::int32_t id = row.ids[i];
    row.ids[i] = row.ids[other];
    row.ids[other] = id;
  }
  sync();
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(argsort) {
  using namespace shunt;
  const auto& args = arguments_of<ArgsortArgs>(call);
  const std::uint64_t number = group();
  if (number >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint32_t columns = args.x.extents[3];
  const Row row{input_of<void>(call, 0),
                row_offset(args.x, number),
                args.x.strides[3],
                args.x.dtype,
                columns,
                output_of<std::int32_t>(call) + number * columns};
  for (std::uint32_t i = lane(); i < columns; i += kGroup) row.ids[i] = static_cast<std::int32_t>(i);
  sync();
  for (std::uint64_t size = 2; size < std::uint64_t{2} * columns; size *= 2) {
    compare(row, static_cast<std::uint32_t>(size - 1));
    for (std::uint64_t stride = size / 4; stride > 0; stride /= 2) compare(row, static_cast<std::uint32_t>(stride));
  }
}
