#include "ops/gpu_kernels.h"
#include "ops/weighted_sum/weighted_sum_args.h"

namespace shunt {
namespace {

// A word of the result has at most two elements. Each stretch of 64 products adds a round to those of its products.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const std::uint64_t products = call.input(1).shape.columns();
  return 2 * (2 + products + products / 64);
}

constexpr ShaderKernel kShaders[] = {
    {.rounds = rounds},
};

std::string fours_supports(const OpCall& call) {
  const Operand& x = call.input(0);
  if (x.dtype == DType::F32 && call.input(1).dtype == DType::F32 && x.has_contiguous_rows() &&
      x.shape.columns() % 4 == 0)
    return {};
  return "weighted_sum: x and weights are not F32, in rows of a multiple of 4 elements";
}
std::uint64_t fours_blocks(const OpCall& call) {
  return blocks_for_elements(call.output->shape.elements(), 4 * kWeightedSumFoursThreads);
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "weighted_sum_fours",
     .supports = fours_supports,
     .blocks = fours_blocks,
     .threads = threads_of_block<kWeightedSumFoursThreads>,
     .rank = 1},
};

}  // namespace

extern const GpuKernels weighted_sum_gpu{.shaders = kShaders, .more_cuda = kMoreCuda};

}  // namespace shunt
