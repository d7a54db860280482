#include <fmt/format.h>

#include "ops/elementwise/elementwise.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

constexpr std::size_t kMostOperands = 4;

std::string supports(const OpCall& call) {
  if (call.inputs.size() > kMostOperands)
    return fmt::format("{}: the shader takes {} operands", name_of(call.op), kMostOperands);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (std::string reason = plain_refusal(call, i); !reason.empty()) return reason;
  return {};
}

std::uint64_t groups(const OpCall& call) { return groups_for_words(*call.output); }

}  // namespace

extern const ShaderKernel elementwise_shader;
const ShaderKernel elementwise_shader{supports, groups, nullptr};

}  // namespace shunt
