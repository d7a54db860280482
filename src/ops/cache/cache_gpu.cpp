#include "ops/cache/cache.h"
#include "ops/gpu_kernels.h"
#include "ops/rotary/turns.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return whole_words_refusal(call, call.input(0)); }

std::uint64_t groups(const OpCall& call) {
  Operand written = call.input(1);
  written.dtype = call.input(0).dtype;
  return groups_for_words(written);
}

std::vector<std::uint32_t> constants(const OpCall& call) {
  const CacheArgs args = cache_arguments(call);
  return args.rotates != 0 ? fixed_point_turns(args.rotary) : std::vector<std::uint32_t>{0};
}

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.input(1).shape.elements()); }

std::vector<std::uint32_t> cuda_constants(const OpCall& call) {
  const CacheArgs args = cache_arguments(call);
  return args.rotates != 0 ? fixed_point_turns(args.rotary) : std::vector<std::uint32_t>();
}

constexpr ShaderKernel kShaders[] = {
    {.supports = supports, .groups = groups, .constants = constants},
};

}  // namespace

extern const GpuKernels cache_gpu{.shaders = kShaders, .cuda = {.blocks = blocks, .constants = cuda_constants}};

}  // namespace shunt
