#include "ops/rotary/rotary.h"
#include "ops/rotary/turns.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  if (call.has_input(2)) return "rotary: the shader takes no factors";
  return {};
}

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

std::vector<std::uint32_t> constants(const OpCall& call) { return fixed_point_turns(rotary_arguments(call)); }

}  // namespace

extern const ShaderKernel rotary_shader;
const ShaderKernel rotary_shader{supports, groups, constants};

}  // namespace shunt
