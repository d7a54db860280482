#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return plain_refusal(call, 0); }

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

}  // namespace

extern const ShaderKernel argmax_shader;
const ShaderKernel argmax_shader{supports, groups, nullptr};

}  // namespace shunt
