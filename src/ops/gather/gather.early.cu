// A thread widens one element. For an id outside x, the row of the result is left unchanged.
#include "ops/gather/gather_args.h"

#include "ops/early.cuh"
#include "ops/matrix.cuh"

namespace shunt {
namespace {

template <bool in_strips>
SHUNT_FUNCTION void gather(const CudaCall* call) {
  let_next_kernel_begin();
  const auto& args = arguments_of<GatherArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.columns;
  const bool exists = row < valid_rows(args.ids, static_cast<Extent>(args.extent), parameters_of(call));
  wait_for_earlier_kernels();
  if (!exists) return;
  const std::int32_t id = input_of<std::int32_t>(call, 1)[row * args.id_stride];
  if (id < 0 || static_cast<std::uint32_t>(id) >= args.rows) return;
  const Matrix<in_strips> x{input_of<std::uint8_t>(call, 0), args.dtype, args.columns,
                            row_bytes(args.dtype, args.strides[0])};
  const auto column = static_cast<std::uint32_t>(index % args.columns);
  output_of<float>(call)[index] = x.at(static_cast<std::uint32_t>(id), column * args.strides[1]);
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(gather) { shunt::gather<false>(call); }
SHUNT_KERNEL(gather_strips) { shunt::gather<true>(call); }
