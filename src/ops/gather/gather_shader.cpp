#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

// The dtype of x.
Specialization specialization(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(0).dtype)}; }

}  // namespace

extern const ShaderKernel gather_shader;
const ShaderKernel gather_shader{supports, groups, nullptr, nullptr, specialization};

}  // namespace shunt
