#include <fmt/format.h>

#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// Elements that a workgroup may look at for one row: about as many as take a second. Drivers end what takes long.
constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 28U;

std::string supports(const OpCall& call) {
  const std::uint64_t k = call.attributes->u32(Attr::k);
  const std::uint64_t columns = call.input(0).shape.columns();
  if (k * columns <= kMostLooks) return {};
  return fmt::format("top_k: {} of {} columns, and the shader looks at no more than {} elements for a row", k, columns,
                     kMostLooks);
}

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

}  // namespace

extern const ShaderKernel top_k_shader;
const ShaderKernel top_k_shader{supports, groups, nullptr};

}  // namespace shunt
