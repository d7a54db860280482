#include "ops/copy/copy.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

std::string whole_supports(const OpCall& call) { return whole_fours(call) != 0 ? "" : "copy: x is converted or moved"; }

std::uint64_t whole_groups(const OpCall& call) { return (whole_fours(call) + kShaderGroupSize - 1) / kShaderGroupSize; }

}  // namespace

extern const ShaderKernel copy_shader;
const ShaderKernel copy_shader{supports, groups, nullptr};

extern const ShaderKernel copy_whole_shader;
const ShaderKernel copy_whole_shader{.supports = whole_supports, .groups = whole_groups, .rank = 1};

}  // namespace shunt
