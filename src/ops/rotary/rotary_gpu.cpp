#include "ops/gpu_kernels.h"
#include "ops/rotary/rotary.h"
#include "ops/rotary/turns.h"

namespace shunt {
namespace {

std::vector<std::uint32_t> constants(const OpCall& call) { return fixed_point_turns(rotary_arguments(call)); }

constexpr ShaderKernel kShaders[] = {
    {.constants = constants},
};

}  // namespace

extern const GpuKernels rotary_gpu{.shaders = kShaders, .cuda = {.constants = constants}};

}  // namespace shunt
