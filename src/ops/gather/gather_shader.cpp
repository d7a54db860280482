#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return weight_refusal(call, 0); }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

}  // namespace

extern const ShaderKernel gather_shader;
const ShaderKernel gather_shader{supports, groups, nullptr};

}  // namespace shunt
