#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

// A word of the result has at most two elements; a stretch of 64 products is a round and theirs.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  const std::uint64_t products = call.input(1).shape.columns();
  return 2 * (2 + products + products / 64);
}

}  // namespace

extern const ShaderKernel weighted_sum_shader;
const ShaderKernel weighted_sum_shader{.supports = supports, .groups = groups, .rounds = rounds};

}  // namespace shunt
