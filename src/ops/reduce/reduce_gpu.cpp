#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

// An element is a row of one.
std::uint64_t groups(const OpCall& call) {
  return groups_for_rows(
      {.dtype = call.output->dtype, .shape = {static_cast<std::uint32_t>(call.input(0).shape.rows()), 1}});
}

// One row, or two whose elements share a word; a stretch of 64 elements is a round and theirs.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const std::uint64_t each = rounds_over(call.input(0).shape.columns());
  const std::uint64_t rows = info_of(call.output->dtype).block_bytes < sizeof(float) ? 2 : 1;
  return rows * (5 + each + each / 64 + kRoundsOfAGroup);
}

constexpr ShaderKernel kShaders[] = {
    {.groups = groups, .rounds = rounds},
};

}  // namespace

extern const GpuKernels reduce_gpu{.shaders = kShaders};

}  // namespace shunt
