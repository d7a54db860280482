#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_rows(*call.output); }

std::uint64_t factors(const OpCall& call) { return call.output->shape.rows(); }

std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const bool is_fragment = limits.language == ShaderLanguage::essl300;
  return is_fragment ? call.output->shape.columns() : rounds_over_rows(*call.output, 1);
}

}  // namespace

extern const ShaderKernel norm_shader;
const ShaderKernel norm_shader{.supports = supports, .groups = groups, .first_pass_words = factors, .rounds = rounds};

}  // namespace shunt
