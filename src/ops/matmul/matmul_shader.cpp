#include "ops/matmul/matmul.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return weight_refusal(call, 1); }

std::uint64_t groups(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return (matmul_capacity(args) + kMatmulGroupRows - 1) / kMatmulGroupRows * args.m;
}

}  // namespace

extern const ShaderKernel matmul_shader;
const ShaderKernel matmul_shader{supports, groups, nullptr};

}  // namespace shunt
