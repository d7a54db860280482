// Few uses of experts whose matrices are in strips: the product of a matrix and one row of x for each use.
//
// The blocks of a grid share the uses evenly, and those of a use its matrix, which they multiply as linear_strips does.
// Which matrix that is only the kernels before this one know, so nothing is read before they have ended.
#include "ops/experts/experts_groups.cuh"
#include "ops/linear/strip_row_kernel.cuh"

namespace shunt {
namespace {

// Returns the arguments of the product of one use with matrix 0.
[[maybe_unused]] SHUNT_FUNCTION Arguments product_of(const CudaCall* call, std::uint64_t use) {
  const auto& args = arguments_of<ExpertsArgs>(call);
  Arguments product{*call, {}, constants_of<LinearStripPlan>(call)};
  product.args.k = args.k;
  product.args.m = args.m;
  for (std::uint32_t& extent : product.args.extents) extent = 1;
  product.args.extent = static_cast<std::uint32_t>(Extent::fixed);
  product.args.has_residual = args.has_bias;
  product.args.has_up = args.has_up;
  product.args.has_norm = args.has_norm;
  product.args.epsilon = args.epsilon;
  product.call.output += use * args.m * sizeof(float);
  product.call.inputs[0] += expert_x_offset(args, use / args.used, use % args.used) * sizeof(float);
  product.call.inputs[2] = call->inputs[4];
  return product;
}

template <std::uint32_t of>
SHUNT_FUNCTION void multiply_use(const CallOfBlock& of_block) {
  const CudaCall* const call = of_block.call;
  const auto& args = arguments_of<ExpertsArgs>(call);
  const std::uint32_t blocks = of_block.blocks / experts_uses(args);  // of a use
  const std::uint32_t use = of_block.block / blocks;
  const Share share{of_block.block % blocks, blocks};
  const bool exists = use < valid_uses(call);
  if (exists && lane() == 0) head().arguments = product_of(call, use);
  wait_for_earlier_kernels();
  if (!exists) return;
  const std::uint32_t slot = slot_of_use(call, use);
  if (slot == kNoExpert) {
    float* const out = output_of<float>(call) + std::uint64_t{use} * args.m;
    for (std::uint32_t i = share.number * kThreads + lane(); i < args.m; i += blocks * kThreads) out[i] = 0.0F;
    return;
  }
  if (lane() == 0) {
    CudaCall& product = head().arguments.call;
    product.inputs[1] += expert_weight_offset(args, slot);
    if (args.has_up != 0) product.inputs[3] += expert_weight_offset(args, slot);
    product.inputs[2] += std::uint64_t{slot} * args.bias_strides[0] * sizeof(float);
  }
  sync();
  const auto& [product, product_args, plan] = head().arguments;
  StripRowKernel<of>::run(product, product_args, plan, share);
}

template <std::uint32_t of>
SHUNT_FUNCTION void multiply_if_in_strips(const CallOfBlock& of_block) {
  if constexpr (kHasStrips<of>) multiply_use<of>(of_block);
}

}  // namespace
}  // namespace shunt

#define SHUNT_FOR_WEIGHT(weight)                                                                      \
  SHUNT_BOUNDED_KERNEL(experts_strips_##weight, shunt::kLinearStripThreads, 1) {                      \
    shunt::multiply_if_in_strips<shunt::dtype::weight>(shunt::call_in(launch_copies, launch_shares)); \
  }
#include "ops/each_weight.cuh"
