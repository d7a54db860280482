// Up to eight rows of x times a weight in strips.
#include "ops/linear/strip_kernel.cuh"

namespace shunt {
namespace {

// A product of those that share the launch.
struct SharedCall {
  const CudaCall* call;
  Share of_call;

  SHUNT_FUNCTION explicit SharedCall(const CallOfBlock& of) : call(of.call), of_call{of.block, of.blocks} {}

  SHUNT_FUNCTION const Share& share() const { return of_call; }
  // Copies words, so that the arguments need no registers later on.
  SHUNT_FUNCTION void copy_to_head() const {
    constexpr std::uint32_t kPlan = (sizeof(CudaCall) + sizeof(LinearArgs)) / 16;
    const auto* const words = reinterpret_cast<const FourWords*>(call);
    const auto* const plan = reinterpret_cast<const FourWords*>(&constants_of<LinearStripPlan>(call));
    const std::uint32_t i = lane();
    if (i < sizeof(Arguments) / 16U)
      reinterpret_cast<FourWords*>(&head().arguments)[i] = i < kPlan ? words[i] : plan[i - kPlan];
  }
};

template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void multiply_strips(const CudaCall* call, const CudaShares& shares) {
  if constexpr (kHasStrips<of>) StripKernel<of, x_rows>::run(SharedCall(call_of_block(call, shares)));
}

}  // namespace
}  // namespace shunt

// A block has a multiprocessor's shared memory for itself, and so its registers.
#define SHUNT_LINEAR_STRIPS(weight, x_rows)                                                \
  SHUNT_BOUNDED_KERNEL(linear_strips_##weight##_##x_rows, shunt::kLinearStripThreads, 1) { \
    shunt::multiply_strips<shunt::dtype::weight, x_rows>(call, launch_shares);             \
  }
#define SHUNT_FOR_WEIGHT(weight) \
  SHUNT_LINEAR_STRIPS(weight, 1) \
  SHUNT_LINEAR_STRIPS(weight, 2) \
  SHUNT_LINEAR_STRIPS(weight, 4) \
  SHUNT_LINEAR_STRIPS(weight, 8)
#include "ops/each_weight.cuh"
