// Up to eight rows of x times a weight in strips.
#include "ops/linear/strips_of_call.cuh"

namespace shunt {
namespace {

template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void multiply_strips(const CudaCall* call, const CudaShares& shares) {
  if constexpr (kHasStrips<of>) {
    const Share share = begin_block_of_call(call, shares);
    StripKernel<of, x_rows>::run(share);
  }
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
