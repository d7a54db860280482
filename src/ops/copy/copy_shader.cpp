#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

}  // namespace

extern const ShaderKernel copy_shader;
const ShaderKernel copy_shader{supports, groups, nullptr};

}  // namespace shunt
