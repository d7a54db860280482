#include <fmt/format.h>

#include "ops/shader.h"

namespace shunt {
namespace {

constexpr std::uint32_t kLargestHead = 256;

std::string supports(const OpCall& call) {
  const std::uint32_t head_dim = call.input(0).shape.columns();
  if (head_dim > kLargestHead)
    return fmt::format("attention: heads of {} elements, and the shader takes {}", head_dim, kLargestHead);
  return {};
}

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

}  // namespace

extern const ShaderKernel attention_shader;
const ShaderKernel attention_shader{supports, groups, nullptr};

}  // namespace shunt
