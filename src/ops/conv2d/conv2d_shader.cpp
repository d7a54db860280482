#include "ops/conv2d/conv2d_args.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) {
  constexpr std::uint64_t kEach = std::uint64_t{kConvRun} * kShaderGroupSize;
  return (call.output->shape.elements() + kEach - 1) / kEach;
}

}  // namespace

extern const ShaderKernel conv2d_shader;
const ShaderKernel conv2d_shader{supports, groups, nullptr};

}  // namespace shunt
