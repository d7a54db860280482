#include "ops/conv2d/conv2d.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

std::uint64_t groups(const OpCall& call) {
  constexpr std::uint64_t kEach = std::uint64_t{kConvRun} * kShaderGroupSize;
  return (call.output->shape.elements() + kEach - 1) / kEach;
}

std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const Shape& weight = call.input(1).shape;  // [filters, channels, rows, columns]
  const std::uint64_t of_row = 1 + std::uint64_t{weight[3]} * (1 + kConvRun);
  return std::uint64_t{weight[1]} * (1 + weight[2] * of_row) + std::uint64_t{2} * kConvRun;
}

std::uint64_t blocks(const OpCall& call) {
  const Conv2dArgs args = conv2d_arguments(call);
  return blocks_for_elements(std::uint64_t{args.x.entries} * args.groups * conv_shares(args) * args.places[0] *
                             args.places[1]);
}

constexpr ShaderKernel kShaders[] = {
    {.groups = groups, .rounds = rounds},
};

}  // namespace

extern const GpuKernels conv2d_gpu{.shaders = kShaders, .cuda = {.blocks = blocks}};

}  // namespace shunt
