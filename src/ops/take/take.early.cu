// A thread copies one element.
#include "ops/take/take_args.h"

#include "ops/early.cuh"

SHUNT_KERNEL(take) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<TakeArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.count;
  const bool exists = row < valid_row_count(args.x, parameters_of(call));
  const std::uint64_t place =
      row_offset(args.x.extents, args.id_strides, row) + index % args.count * args.id_strides[3];
  wait_for_earlier_kernels();
  if (!exists) return;
  const auto id = static_cast<std::uint32_t>(input_of<std::int32_t>(call, 1)[place]);
  if (id < args.x.extents[3] && id <= 0x7FFFFFFFU)
    copy_element(args.x.dtype, output_of<void>(call), index, input_of<void>(call, 0),
                 row_offset(args.x, row) + std::uint64_t{id} * args.x.strides[3]);
  else
    store(args.x.dtype, output_of<void>(call), index, 0.0F);
}
