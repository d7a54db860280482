// Computes every elementwise row of ops.def from its expression. A thread computes one element of the result.
#include "ops/elementwise/value_of.cuh"

SHUNT_KERNEL(elementwise) {
  using namespace shunt;
  const auto& args = arguments_of<ElementwiseArgs>(call);
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.x.extents[3];
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint64_t column = index % args.x.extents[3];
  float operand[kMaxElementwiseOperands];
  // A loop of constant length keeps the operands in registers.
  for (std::uint32_t k = 0; k < kMaxElementwiseOperands; ++k)
    operand[k] = k < args.operands
                     ? load(args.dtypes[k], input_of<void>(call, k),
                            row_offset(args.x.extents, args.strides[k], row) + column * args.strides[k][3])
                     : 0.0F;
  store(args.x.dtype, output_of<void>(call), index, value_of(args.op, operand, args.attributes));
}
