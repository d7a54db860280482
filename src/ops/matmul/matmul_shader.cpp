#include <fmt/format.h>

#include "ops/matmul/matmul.h"
#include "ops/shader.h"

namespace shunt {
namespace {

std::string supports(const OpCall&) { return {}; }

std::string few_weights_supports(const OpCall& call) {
  const DType dtype = call.input(1).dtype;
  if (info_of(dtype).kind != DTypeKind::quantized || dtype == DType::Q8_0) return {};
  return fmt::format("matmul: {} is not one of few types of weights", name_of(dtype));
}

std::uint64_t groups(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return (matmul_capacity(args) + kMatmulGroupRows - 1) / kMatmulGroupRows * args.m;
}

// The dtype of the weight.
Specialization specialization(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(1).dtype)}; }

}  // namespace

extern const ShaderKernel matmul_shader;
const ShaderKernel matmul_shader{supports, groups, nullptr, nullptr, specialization};

extern const ShaderKernel matmul_few_weights_shader;
const ShaderKernel matmul_few_weights_shader{.supports = few_weights_supports,
                                             .groups = groups,
                                             .constants = nullptr,
                                             .specialization = specialization,
                                             .rank = 1};

}  // namespace shunt
