// A thread widens one element. For an id outside x, the row of the result is left unchanged.
#include "ops/gather/gather_args.h"

#include "ops/weight.cuh"

SHUNT_KERNEL(gather) {
  using namespace shunt;
  const auto& args = arguments_of<GatherArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.columns;
  if (row >= valid_rows(args.ids, static_cast<Extent>(args.extent), parameters_of(call))) return;
  const std::int32_t id = input_of<std::int32_t>(call, 1)[row * args.id_stride];
  if (id < 0 || static_cast<std::uint32_t>(id) >= args.rows) return;
  const auto column = static_cast<std::uint32_t>(index % args.columns);
  const std::uint8_t* from = input_of<std::uint8_t>(call, 0) +
                             row_bytes(args.dtype, std::uint64_t{static_cast<std::uint32_t>(id)} * args.strides[0]);
  output_of<float>(call)[index] = weight_at(args.dtype, from, column * args.strides[1]);
}
