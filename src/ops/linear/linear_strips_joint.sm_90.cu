// One row of x times weights of two dtypes, whose calls share a launch: files of mixed types have values of another one
// than queries and keys.
#include "ops/linear/strip_row_kernel.cuh"

namespace shunt {
namespace {

template <std::uint32_t first, std::uint32_t second>
SHUNT_FUNCTION void multiply_either(const CallOfBlock& of_block) {
  if (arguments_of<LinearArgs>(of_block.call).weight_dtype == first)
    StripRowKernel<first>::run(of_block);
  else
    StripRowKernel<second>::run(of_block);
}

}  // namespace
}  // namespace shunt

#define SHUNT_JOINT_STRIPS(first, second)                                                                            \
  SHUNT_BOUNDED_KERNEL(linear_strips_joint_##first##_##second, shunt::kLinearStripThreads, 1) {                      \
    shunt::multiply_either<shunt::dtype::first, shunt::dtype::second>(shunt::call_in(launch_copies, launch_shares)); \
  }
#include "ops/linear/joint_strips.def"
