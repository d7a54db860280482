#include <fmt/format.h>

#include "ops/attention/attention_args.h"
#include "ops/shader.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  const std::uint32_t head_dim = call.input(0).shape.columns();
  if (head_dim > kLargestGroupHead)
    return fmt::format("attention: heads of {} elements, and the shader takes {}", head_dim, kLargestGroupHead);
  return {};
}

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

}  // namespace

extern const ShaderKernel attention_shader;
const ShaderKernel attention_shader{supports, groups, nullptr};

}  // namespace shunt
