#include "ops/experts/experts.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::uint64_t groups(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  return std::uint64_t{args.tokens} * args.used * ((args.m + kExpertsGroupRows - 1) / kExpertsGroupRows);
}

Specialization specialization(const OpCall& call) { return {experts_arguments(call).weight_dtype}; }

std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  return rounds_over(experts_arguments(call).k) * (1 + kExpertsGroupRows) + kRoundsOfAGroup;
}

std::uint64_t blocks(const OpCall& call) { return call.output->shape.elements(); }

constexpr ShaderKernel kShaders[] = {
    {.groups = groups, .specialization = specialization, .rounds = rounds},
};

constexpr CudaKernel kMoreCuda[] = {
    {.name = "experts", .blocks = blocks, .variant = for_strips, .weights = Layout::strips}};

}  // namespace

extern const GpuKernels experts_gpu{.shaders = kShaders, .cuda = {.blocks = blocks}, .more_cuda = kMoreCuda};

}  // namespace shunt
