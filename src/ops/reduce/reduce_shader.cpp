#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

// An element is a row of one.
std::uint64_t groups(const OpCall& call) {
  return groups_for_rows(
      {.dtype = call.output->dtype, .shape = {static_cast<std::uint32_t>(call.input(0).shape.rows()), 1}});
}

}  // namespace

extern const ShaderKernel reduce_shader;
const ShaderKernel reduce_shader{supports, groups, nullptr};

}  // namespace shunt
