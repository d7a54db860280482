// Products by weights in strips (strip_kernel.cuh) whose calls share a launch.
#pragma once

#include "ops/linear/strip_kernel.cuh"

namespace shunt {
namespace {

// Stores the arguments of the block's call in the head, and begins the block. Returns the block's share of the call.
[[maybe_unused]] SHUNT_FUNCTION Share begin_block_of_call(const CudaCall* first, const CudaShares& shares) {
  const CallOfBlock of = call_of_block(first, shares);
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

}  // namespace
}  // namespace shunt
