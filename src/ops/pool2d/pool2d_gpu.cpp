#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

// A word of the result has at most two elements.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const Shape& kernel = call.attributes->shape(Attr::kernel);
  return 2 * (1 + kernel[0] * (std::uint64_t{1} + kernel[1]));
}

constexpr ShaderKernel kShaders[] = {
    {.rounds = rounds},
};

}  // namespace

extern const GpuKernels pool2d_gpu{.shaders = kShaders};

}  // namespace shunt
