#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return groups_for_rows(*call.output); }

std::uint64_t factors(const OpCall& call) { return call.output->shape.rows(); }

}  // namespace

extern const ShaderKernel norm_shader;
const ShaderKernel norm_shader{supports, groups, nullptr, factors};

}  // namespace shunt
