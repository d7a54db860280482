// A thread copies one element of a or of b.
#include "ops/concat/concat_args.h"

#include "ops/kernel.cuh"

SHUNT_KERNEL(concat) {
  using namespace shunt;
  const auto& args = arguments_of<ConcatArgs>(call);
  const std::uint64_t elements_of_a = row_count(args.a) * args.a.extents[3];
  const bool of_b = thread_index() >= elements_of_a;
  const StridedTensor& from = of_b ? args.b : args.a;
  const std::uint64_t index = thread_index() - (of_b ? elements_of_a : 0);
  const std::uint32_t columns = from.extents[3];
  const std::uint64_t valid = valid_row_count(from, parameters_of(call)) * columns;
  if (index >= valid) return;
  const std::uint64_t row = index / columns;
  const std::uint64_t column = index % columns;
  copy_element(from.dtype, output_of<void>(call), concat_target(args, of_b, row) + column,
               input_of<void>(call, of_b ? 1 : 0), row_offset(from, row) + column * from.strides[3]);
}
