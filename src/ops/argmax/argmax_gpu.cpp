#include "ops/argmax/argmax_args.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t columns = call.input(0).shape.columns();
  return limits.language == ShaderLanguage::essl300 ? columns : rounds_over(columns) + kRoundsOfAGroup;
}

bool has_short_rows(const OpCall& call) { return call.input(0).shape.columns() <= kArgmaxShort; }
std::uint32_t cuda_threads(const OpCall& call) { return has_short_rows(call) ? kArgmaxThreadsOfShort : kArgmaxThreads; }
std::string cuda_variant(const OpCall& call) { return has_short_rows(call) ? "_short" : "_long"; }

constexpr ShaderKernel kShaders[] = {
    {.groups = one_per_input_row, .rounds = rounds},
};

}  // namespace

extern const GpuKernels argmax_gpu{
    .shaders = kShaders, .cuda = {.blocks = one_per_input_row, .threads = cuda_threads, .variant = cuda_variant}};

}  // namespace shunt
