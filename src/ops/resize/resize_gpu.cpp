#include <fmt/format.h>
#include <limits>

#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

// The shader computes positions in 32 bits, as fractions whose numerators reach 2 * from * to.
std::string supports(const OpCall& call) {
  for (std::size_t axis = 2; axis < 4; ++axis) {
    const std::uint64_t from = call.input(0).shape[axis];
    const std::uint64_t to = call.output->shape[axis];
    if (2 * from * to > std::numeric_limits<std::uint32_t>::max())
      return fmt::format("{}: {} pixels from {} along an axis are more than the shader counts", name_of(call.op), to,
                         from);
  }
  return {};
}

constexpr ShaderKernel kShaders[] = {
    {.supports = supports},
};

}  // namespace

extern const GpuKernels resize_gpu{.shaders = kShaders};

}  // namespace shunt
