#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

// Each result counts as a row of one element.
std::uint64_t groups(const OpCall& call) {
  return groups_for_rows(
      {.dtype = call.output->dtype, .shape = {static_cast<std::uint32_t>(call.input(0).shape.rows()), 1}});
}

// A workgroup takes one row, or two whose results share a word. A stretch of 64 elements costs one round on top of
// theirs.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const std::uint64_t each = rounds_over(call.input(0).shape.columns());
  const std::uint64_t rows = info_of(call.output->dtype).block_bytes < sizeof(float) ? 2 : 1;
  return rows * (5 + each + each / 64 + kRoundsOfAGroup);
}

constexpr ShaderKernel kShaders[] = {
    {.groups = groups, .rounds = rounds},
};

}  // namespace

extern const GpuKernels reduce_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_input_row}};

}  // namespace shunt
