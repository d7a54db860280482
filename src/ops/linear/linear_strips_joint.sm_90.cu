// One row of x times weights of two dtypes, whose calls share a launch: files of mixed types have values of another one
// than queries and keys.
#include "ops/linear/strips_of_call.cuh"

namespace shunt {
namespace {

template <std::uint32_t first, std::uint32_t second>
SHUNT_FUNCTION void multiply_either(const CudaCall* call, const CudaShares& shares) {
  const Share share = begin_block_of_call(call, shares);
  if (head().arguments.args.weight_dtype == first)
    StripKernel<first, 1>::run(share);
  else
    StripKernel<second, 1>::run(share);
}

}  // namespace
}  // namespace shunt

#define SHUNT_JOINT_STRIPS(first, second)                                                       \
  SHUNT_BOUNDED_KERNEL(linear_strips_joint_##first##_##second, shunt::kLinearStripThreads, 1) { \
    shunt::multiply_either<shunt::dtype::first, shunt::dtype::second>(call, launch_shares);     \
  }
#include "ops/linear/joint_strips.def"
