#include "ops/experts_sum/experts_sum.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::uint64_t blocks(const OpCall& call) {
  const ExpertsSumArgs args = experts_sum_arguments(call);
  return std::uint64_t{args.tokens} * experts_sum_blocks(args);
}

}  // namespace

extern const GpuKernels experts_sum_gpu{.cuda = {.blocks = blocks}};

}  // namespace shunt
