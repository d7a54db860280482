#include "ops/gpu_kernels.h"

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

}  // namespace

extern const GpuKernels weighted_sum_gpu{.shaders = kShaders};

}  // namespace shunt
