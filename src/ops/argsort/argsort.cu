// A block sorts the indices of one row.
#include "ops/argsort/argsort_args.h"

#include "ops/sort.cuh"

SHUNT_KERNEL(argsort) {
  using namespace shunt;
  const auto& args = arguments_of<ArgsortArgs>(call);
  const std::uint64_t row = group();
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint32_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  std::int32_t* const ids = output_of<std::int32_t>(call) + row * columns;
  for (std::uint32_t i = lane(); i < columns; i += kGroup) ids[i] = static_cast<std::int32_t>(i);
  sync();
  const auto value_of = [&](std::int32_t id) {
    return load(args.x.dtype, input_of<void>(call, 0),
                begin + std::uint64_t{static_cast<std::uint32_t>(id)} * args.x.strides[3]);
  };
  // Smaller values come first, then lower indices, NaN last.
  sort_ids(ids, columns, [&](std::int32_t a, std::int32_t b) {
    const float first = value_of(a);
    const float second = value_of(b);
    const bool is_number = first == first;
    if (is_number != (second == second)) return is_number;
    return first < second || (!(second < first) && a < b);
  });
}
