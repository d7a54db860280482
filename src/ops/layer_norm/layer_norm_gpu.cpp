#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  // Each stretch of 64 columns per invocation adds a round.
  const std::uint64_t stretches = 1 + call.output->shape.columns() / (64 * kShaderGroupSize);
  return rounds_over_rows(*call.output, 2) + 4 * stretches;
}

constexpr ShaderKernel kShaders[] = {
    {.groups = whole_rows, .rounds = rounds},
};

}  // namespace

extern const GpuKernels layer_norm_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_row}};

}  // namespace shunt
