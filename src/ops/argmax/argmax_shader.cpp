#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return plain_refusal(call, 0); }

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t columns = call.input(0).shape.columns();
  return limits.language == ShaderLanguage::essl300 ? columns : rounds_over(columns) + kRoundsOfAGroup;
}

}  // namespace

extern const ShaderKernel argmax_shader;
const ShaderKernel argmax_shader{.supports = supports, .groups = groups, .rounds = rounds};

}  // namespace shunt
