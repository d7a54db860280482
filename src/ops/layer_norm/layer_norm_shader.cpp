#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_rows(*call.output); }

std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  // A stretch of 64 columns is a round more.
  const std::uint64_t stretches = 1 + call.output->shape.columns() / (64 * kShaderGroupSize);
  return rounds_over_rows(*call.output, 2) + 4 * stretches;
}

}  // namespace

extern const ShaderKernel layer_norm_shader;
const ShaderKernel layer_norm_shader{.supports = supports, .groups = groups, .rounds = rounds};

}  // namespace shunt
