#include <fmt/format.h>

#include "ops/gpu_kernels.h"
#include "ops/norm/norm.h"

namespace shunt {
namespace {

std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const bool is_fragment = limits.language == ShaderLanguage::essl300;
  return is_fragment ? call.output->shape.columns() : rounds_over_rows(*call.output, 1);
}

constexpr GroupNeeds kNeeds = {.group = 256, .smallest_subgroup = 4};

std::uint32_t fours_each(const OpCall& call) {
  constexpr std::uint32_t kElements = 4 * kNeeds.group;
  return (call.output->shape.columns() + kElements - 1) / kElements;
}

std::string row_supports(const OpCall& call) {
  const auto is_f32 = [&](std::size_t input) {
    return !call.has_input(input) || call.input(input).dtype == DType::F32;
  };
  const auto is_run = [&](std::size_t input) {
    return !call.has_input(input) || call.input(input).has_contiguous_rows();
  };
  if (call.output->shape.columns() % 4 == 0 && fours_each(call) <= kNormRowFours && is_f32(0) && is_run(0) &&
      (call.inputs.size() < 2 || (is_f32(1) && is_run(1))))
    return {};
  return fmt::format("{}: x is not F32 in rows of a multiple of 4 elements", name_of(call.op));
}

Specialization row_specialization(const OpCall& call) { return {fours_each(call), 0, 0, kNeeds.group}; }

constexpr ShaderKernel kShaders[] = {
    {.groups = whole_rows, .first_pass_words = one_per_row, .rounds = rounds},
    {.name = "norm_row",
     .supports = row_supports,
     .groups = one_per_row,
     .specialization = row_specialization,
     .runs_on = offers<kNeeds>,
     .rank = 1},
};

}  // namespace

extern const GpuKernels norm_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_row}};

}  // namespace shunt
