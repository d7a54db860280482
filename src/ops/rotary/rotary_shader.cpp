#include "ops/rotary/rotary.h"
#include "ops/rotary/turns.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

std::vector<std::uint32_t> constants(const OpCall& call) { return fixed_point_turns(rotary_arguments(call)); }

}  // namespace

extern const ShaderKernel rotary_shader;
const ShaderKernel rotary_shader{supports, groups, constants};

}  // namespace shunt
