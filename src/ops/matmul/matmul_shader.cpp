#include <fmt/format.h>

#include <algorithm>

#include "ops/matmul/matmul.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return normalizes_refusal(call); }

std::uint64_t groups(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return (matmul_capacity(args) + kMatmulGroupRows - 1) / kMatmulGroupRows * args.m;
}

// The dtype of the weight.
Specialization specialization(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(1).dtype)}; }

// Fewer rows than a workgroup has invocations would leave some without work.
std::string on_cpu_supports(const OpCall& call) {
  if (std::string reason = normalizes_refusal(call); !reason.empty()) return reason;
  const DType dtype = call.input(1).dtype;
  if (matmul_args(call).m < kShaderGroupSize) return "matmul: the weight has few rows";
  if (info_of(dtype).kind != DTypeKind::quantized || dtype == DType::Q8_0) return {};
  return fmt::format("matmul: {} is not one of few types of weights", name_of(dtype));
}

std::uint32_t on_cpu_x_rows(const MatmulArgs& args) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(matmul_capacity(args), 1, kMatmulGroupRows));
}

std::uint64_t on_cpu_groups(const OpCall& call) { return (groups(call) + kShaderGroupSize - 1) / kShaderGroupSize; }

Specialization on_cpu_specialization(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return {args.weight_dtype, args.x_dtype, on_cpu_x_rows(args)};
}

bool on_cpu_runs_on(const ShaderLimits& limits) { return limits.on_cpu; }

// Each column of the weight is multiplied with up to four rows of x.
std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t k = matmul_args(call).k;
  if (limits.language == ShaderLanguage::essl300) return k;
  return rounds_over(k) * (1 + kMatmulGroupRows) + kRoundsOfAGroup + kMatmulGroupRows;
}
std::uint64_t on_cpu_rounds(const OpCall& call, const ShaderLimits&) {
  const MatmulArgs args = matmul_args(call);
  return args.k * (std::uint64_t{1} + on_cpu_x_rows(args)) + args.k / 32 + std::uint64_t{2} * kMatmulGroupRows;
}

}  // namespace

extern const ShaderKernel matmul_shader;
const ShaderKernel matmul_shader{
    .supports = supports, .groups = groups, .specialization = specialization, .rounds = rounds};

extern const ShaderKernel matmul_on_cpu_shader;
const ShaderKernel matmul_on_cpu_shader{.supports = on_cpu_supports,
                                        .groups = on_cpu_groups,
                                        .specialization = on_cpu_specialization,
                                        .runs_on = on_cpu_runs_on,
                                        .rank = 4,
                                        .rounds = on_cpu_rounds};

}  // namespace shunt
