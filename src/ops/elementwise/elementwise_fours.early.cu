// Elementwise rows whose operands are all contiguous and F32. A thread computes four elements of the result.
#include "ops/early.cuh"
#include "ops/elementwise/value_of.cuh"

SHUNT_BOUNDED_KERNEL(elementwise_fours, shunt::kElementwiseFoursThreads, 4) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<ElementwiseArgs>(call);
  const std::uint64_t first = (group() * kElementwiseFoursThreads + lane()) * 4U;
  const bool exists = first < valid_row_count(args.x, parameters_of(call)) * args.x.extents[3];
  wait_for_earlier_kernels();
  if (!exists) return;
  FourFloats operands[kMaxElementwiseOperands];
  SHUNT_UNROLL
  for (std::uint32_t k = 0; k < kMaxElementwiseOperands; ++k) {
    operands[k] = {{0.0F, 0.0F, 0.0F, 0.0F}};
    if (k >= args.operands) continue;
    const float* const from = input_of<float>(call, k) + first;
    operands[k] = read_four(from, is_in_sixteens(from));
  }
  FourFloats result;
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e) {
    float operand[kMaxElementwiseOperands];
    SHUNT_UNROLL
    for (std::uint32_t k = 0; k < kMaxElementwiseOperands; ++k) operand[k] = operands[k].values[e];
    result.values[e] = value_of(args.op, operand, args.attributes);
  }
  write_four(output_of<float>(call) + first, result);
}
