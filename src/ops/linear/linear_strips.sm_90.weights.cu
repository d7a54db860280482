// Up to eight rows of x times a weight in strips.
#include "ops/linear/strip_kernel.cuh"
#include "ops/linear/strip_row_kernel.cuh"

namespace shunt {
namespace {

// Stores the arguments of the block's call in the head, and begins the block. Returns the block's share of the call.
[[maybe_unused]] SHUNT_FUNCTION Share begin_block_of_call(const CallOfBlock& of) {
  // Copies words, so that the arguments need no registers later on.
  constexpr std::uint32_t kPlan = (sizeof(CudaCall) + sizeof(LinearArgs)) / 16;
  const auto* const words = reinterpret_cast<const FourWords*>(of.call);
  const auto* const plan = reinterpret_cast<const FourWords*>(&constants_of<LinearStripPlan>(of.call));
  const std::uint32_t i = lane();
  if (i < sizeof(Arguments) / 16U)
    reinterpret_cast<FourWords*>(&head().arguments)[i] = i < kPlan ? words[i] : plan[i - kPlan];
  begin_block();
  return {of.block, of.blocks};
}

template <std::uint32_t of>
SHUNT_FUNCTION void multiply_row(const CallOfBlock& of_block) {
  if constexpr (kHasStrips<of>) StripRowKernel<of>::run(of_block);
}
template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void multiply_rows(const CallOfBlock& of_block) {
  if constexpr (kHasStrips<of>) StripKernel<of, x_rows>::run(begin_block_of_call(of_block));
}

}  // namespace
}  // namespace shunt

// A block has a multiprocessor's shared memory for itself, and so its registers.
#define SHUNT_LINEAR_STRIP_ROW(weight)                                                       \
  SHUNT_BOUNDED_KERNEL(linear_strips_##weight##_1, shunt::kLinearStripThreads, 1) {          \
    shunt::multiply_row<shunt::dtype::weight>(shunt::call_in(launch_copies, launch_shares)); \
  }
#define SHUNT_LINEAR_STRIPS(weight, x_rows)                                                        \
  SHUNT_BOUNDED_KERNEL(linear_strips_##weight##_##x_rows, shunt::kLinearStripThreads, 1) {         \
    shunt::multiply_rows<shunt::dtype::weight, x_rows>(shunt::call_of_block(call, launch_shares)); \
  }
#define SHUNT_FOR_WEIGHT(weight) \
  SHUNT_LINEAR_STRIP_ROW(weight) \
  SHUNT_LINEAR_STRIPS(weight, 2) \
  SHUNT_LINEAR_STRIPS(weight, 4) \
  SHUNT_LINEAR_STRIPS(weight, 8)
#include "ops/each_weight.cuh"
