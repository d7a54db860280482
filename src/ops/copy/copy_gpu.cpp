#include "ops/copy/copy.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::string whole_supports(const OpCall& call) { return whole_fours(call) != 0 ? "" : "copy: x is converted or moved"; }

std::uint64_t whole_groups(const OpCall& call) { return (whole_fours(call) + kShaderGroupSize - 1) / kShaderGroupSize; }

// A thread moves four words if x is copied unchanged, else one element.
std::uint64_t blocks(const OpCall& call) {
  const std::uint64_t fours = whole_fours(call);
  return blocks_for_elements(fours != 0 ? fours : call.output->shape.elements());
}

constexpr ShaderKernel kShaders[] = {
    {.name = "copy_whole", .supports = whole_supports, .groups = whole_groups, .rank = 1},
};

}  // namespace

extern const GpuKernels copy_gpu{.shaders = kShaders, .cuda = {.blocks = blocks}};

}  // namespace shunt
