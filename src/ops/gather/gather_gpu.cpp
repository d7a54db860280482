#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

Specialization specialization(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(0).dtype)}; }

constexpr ShaderKernel kShaders[] = {
    {.specialization = specialization},
};

constexpr CudaKernel kMoreCuda[] = {{.name = "gather", .variant = for_strips, .weights = Layout::strips}};

}  // namespace

extern const GpuKernels gather_gpu{.shaders = kShaders, .more_cuda = kMoreCuda};

}  // namespace shunt
