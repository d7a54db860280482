// Computes every elementwise row of ops.def from its expression. A thread computes one element of the result.
#include "ops/elementwise/elementwise_args.h"

#include "ops/elementwise/expressions.h"
#include "ops/kernel.cuh"

namespace shunt {
namespace kernel_math::expressions {

#define SHUNT_VALUE float
#define SHUNT_ELEMENTWISE(...) SHUNT_ELEMENTWISE_FUNCTION(__VA_ARGS__)
#include "ops/ops.def"
#undef SHUNT_VALUE

}  // namespace kernel_math::expressions

namespace {

// Rows are numbered as in the enum Op.
namespace row {
enum : std::uint32_t {
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) name,
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) name,
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) name,
#include "ops/ops.def"
};
}  // namespace row

SHUNT_FUNCTION float value_of(std::uint32_t op, const float* operand, const float* attribute) {
  switch (op) {
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) \
  case row::name:                                                          \
    return kernel_math::expressions::row_##name(operand, attribute);
#include "ops/ops.def"
    default:
      return 0.0F;
  }
}

}  // namespace
}  // namespace shunt

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
