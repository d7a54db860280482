#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

// A word of the result has at most two elements.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const Shape& kernel = call.attributes->shape(Attr::kernel);
  return 2 * (1 + kernel[0] * (std::uint64_t{1} + kernel[1]));
}

}  // namespace

extern const ShaderKernel pool2d_shader;
const ShaderKernel pool2d_shader{.supports = supports, .groups = groups, .rounds = rounds};

}  // namespace shunt
