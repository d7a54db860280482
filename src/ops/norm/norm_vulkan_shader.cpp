// The kernel of rms_norm that only Vulkan has.
#include <fmt/format.h>

#include "ops/norm/norm.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

constexpr GroupNeeds kNeeds = {.group = 256, .smallest_subgroup = 4};

std::uint32_t fours_each(const OpCall& call) {
  constexpr std::uint32_t kElements = 4 * kNeeds.group;
  return (call.output->shape.columns() + kElements - 1) / kElements;
}

std::string supports(const OpCall& call) {
  const auto is_f32 = [&](std::size_t input) {
    return !call.has_input(input) || call.input(input).dtype == DType::F32;
  };
  const auto is_run = [&](std::size_t input) {
    return !call.has_input(input) || call.input(input).has_contiguous_rows();
  };
  if (call.output->shape.columns() % 4 == 0 && fours_each(call) <= kNormRowFours && is_f32(0) && is_run(0) &&
      (call.inputs.size() < 2 || (is_f32(1) && is_run(1))))
    return {};
  return fmt::format("{}: x is not of F32 in fours", name_of(call.op));
}

Specialization specialization(const OpCall& call) { return {fours_each(call), 0, 0, kNeeds.group}; }

}  // namespace

extern const ShaderKernel norm_row_shader;
const ShaderKernel norm_row_shader{.supports = supports,
                                   .groups = group_for_each_row,
                                   .specialization = specialization,
                                   .runs_on = offers<kNeeds>,
                                   .rank = 1};

}  // namespace shunt
