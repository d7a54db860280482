#include "ops/gpu_kernels.h"
#include "ops/rotary/rotary.h"
#include "ops/rotary/turns.h"

namespace shunt {
namespace {

std::vector<std::uint32_t> constants(const OpCall& call) { return fixed_point_turns(rotary_arguments(call)); }

constexpr ShaderKernel kShaders[] = {
    {.constants = constants},
};

std::string pairs_supports(const OpCall& call) {
  if (call.input(0).dtype == DType::F32 && call.input(0).shape.columns() % 2 == 0) return {};
  return "rotary: x is not F32, or has heads of an odd number of elements";
}
std::uint64_t pairs_blocks(const OpCall& call) {
  const RotaryArgs args = rotary_arguments(call);
  const std::uint64_t tokens = std::uint64_t{args.x.extents[0]} * args.x.extents[1];
  return blocks_for_elements(tokens * rotary_head_groups(args) * (args.x.extents[3] / 2), kRotaryThreads);
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "rotary_pairs",
     .supports = pairs_supports,
     .blocks = pairs_blocks,
     .threads = threads_of_block<kRotaryThreads>,
     .rank = 1,
     .constants = constants},
};

}  // namespace

extern const GpuKernels rotary_gpu{.shaders = kShaders, .cuda = {.constants = constants}, .more_cuda = kMoreCuda};

}  // namespace shunt
