#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t columns = call.input(0).shape.columns();
  return limits.language == ShaderLanguage::essl300 ? columns : rounds_over(columns) + kRoundsOfAGroup;
}

constexpr ShaderKernel kShaders[] = {
    {.groups = one_per_input_row, .rounds = rounds},
};

}  // namespace

extern const GpuKernels argmax_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_input_row}};

}  // namespace shunt
