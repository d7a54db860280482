// The kernels of matmul that only Vulkan has, for few rows of x, normalized or not, and for many.
#include "ops/matmul/matmul.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// Smaller ones are those of drivers on the CPU to which a barrier costs more than all of this saves.
constexpr std::uint32_t kSmallestSubgroup = 8;
constexpr GroupNeeds kRowNeeds = {.group = 32, .smallest_subgroup = kSmallestSubgroup};
// That each workgroup normalizes x anew costs nothing where the weights are what it waits for: not on a CPU.
constexpr GroupNeeds kNormNeeds = {.group = 32, .smallest_subgroup = kSmallestSubgroup, .on_cpu = false};
constexpr GroupNeeds kTileNeeds = {.group = 128,
                                   .smallest_subgroup = kSmallestSubgroup,
                                   .shared_bytes = sizeof(float) * 2 * 32 * (kMatmulTileRows + 4)};

// Empty, or why x is not read four elements at a time.
std::string fours_refusal(const MatmulArgs& args) {
  const bool is_in_fours =
      args.x_strides[0] % 4 == 0 && args.x_strides[1] % 4 == 0 && args.x_strides[2] % 4 == 0 && args.x_strides[3] == 1;
  if (args.k % 8 == 0 && is_in_fours && static_cast<DType>(args.x_dtype) == DType::F32) return {};
  return "matmul: x is not of F32 in eights";
}

std::string few_rows_refusal(const MatmulArgs& args) {
  const std::uint64_t rows = matmul_capacity(args);
  if (rows == 0 || rows > kMatmulRowXRows) return "matmul: x has not few rows";
  return fours_refusal(args);
}

std::string row_supports(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  if (args.has_norm != 0) return normalizes_refusal(call);
  return few_rows_refusal(args);
}

std::string norm_supports(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  if (args.has_norm == 0) return "matmul: x is not normalized";
  return few_rows_refusal(args);
}

std::uint64_t row_groups(const OpCall& call) { return matmul_args(call).m; }

// An invocation takes eight columns at a time; the parts of the subgroups follow.
std::uint64_t row_rounds(const OpCall& call, const ShaderLimits&) {
  return matmul_args(call).k / 8 / kRowNeeds.group + std::uint64_t{8} * kMatmulRowXRows * kRowNeeds.group;
}

Specialization row_specialization(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  return {args.weight_dtype, static_cast<std::uint32_t>(matmul_capacity(args)), 1 + args.has_up, kRowNeeds.group};
}

std::string tile_supports(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  if (args.has_norm != 0) return normalizes_refusal(call);
  if (matmul_capacity(args) <= kMatmulRowXRows) return "matmul: x has few rows";
  return fours_refusal(args);
}

std::uint64_t tile_groups(const OpCall& call) {
  const MatmulArgs args = matmul_args(call);
  const auto tiles = [](std::uint64_t rows) { return (rows + kMatmulTileRows - 1) / kMatmulTileRows; };
  return tiles(args.m) * tiles(matmul_capacity(args));
}

// A step puts 32 columns into shared memory, of which an invocation brings two eights, and goes over them.
std::uint64_t tile_rounds(const OpCall& call, const ShaderLimits&) {
  constexpr std::uint64_t kColumns = 32;
  constexpr std::uint64_t kBringing = std::uint64_t{2} * (1 + 4 + 4);
  return (matmul_args(call).k / kColumns + 1) * (1 + kBringing + kColumns) + 64;
}

Specialization tile_specialization(const OpCall& call) {
  return {matmul_args(call).weight_dtype, 0, 0, kTileNeeds.group};
}

}  // namespace

extern const ShaderKernel matmul_row_shader;
const ShaderKernel matmul_row_shader{.supports = row_supports,
                                     .groups = row_groups,
                                     .specialization = row_specialization,
                                     .runs_on = offers<kRowNeeds>,
                                     .rank = 3,
                                     .rounds = row_rounds};

extern const ShaderKernel matmul_norm_shader;
const ShaderKernel matmul_norm_shader{.supports = norm_supports,
                                      .groups = row_groups,
                                      .specialization = row_specialization,
                                      .runs_on = offers<kNormNeeds>,
                                      .rank = 3,
                                      .rounds = row_rounds};

extern const ShaderKernel matmul_tile_shader;
const ShaderKernel matmul_tile_shader{.supports = tile_supports,
                                      .groups = tile_groups,
                                      .specialization = tile_specialization,
                                      .runs_on = offers<kTileNeeds>,
                                      .rank = 2,
                                      .rounds = tile_rounds};

}  // namespace shunt
