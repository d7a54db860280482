#include "ops/conv2d/conv2d_args.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) {
  constexpr std::uint64_t kEach = std::uint64_t{kConvRun} * kShaderGroupSize;
  return (call.output->shape.elements() + kEach - 1) / kEach;
}

std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const Shape& weight = call.input(1).shape;  // [filters, channels, rows, columns]
  const std::uint64_t of_row = 1 + std::uint64_t{weight[3]} * (1 + kConvRun);
  return std::uint64_t{weight[1]} * (1 + weight[2] * of_row) + std::uint64_t{2} * kConvRun;
}

}  // namespace

extern const ShaderKernel conv2d_shader;
const ShaderKernel conv2d_shader{.supports = supports, .groups = groups, .rounds = rounds};

}  // namespace shunt
