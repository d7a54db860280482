#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return whole_words_refusal(call, *call.output); }

std::uint64_t groups(const OpCall& call) { return call.output->shape.rows(); }

}  // namespace

extern const ShaderKernel norm_shader;
const ShaderKernel norm_shader{supports, groups, nullptr, groups};  // a factor for each row

}  // namespace shunt
