#include <fmt/format.h>

#include "ops/elementwise/elementwise.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

constexpr std::size_t kMostOperands = 4;

std::string supports(const OpCall& call) {
  if (call.inputs.size() > kMostOperands)
    return fmt::format("{}: the shader takes {} operands", name_of(call.op), kMostOperands);
  return {};
}

constexpr ShaderKernel kShaders[] = {
    {.supports = supports},
};

}  // namespace

extern const GpuKernels elementwise_gpu{.shaders = kShaders};

}  // namespace shunt
