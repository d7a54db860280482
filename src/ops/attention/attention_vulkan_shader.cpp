// The kernel of attention that only Vulkan has.
#include "ops/attention/attention.h"
#include "ops/shader.h"

namespace shunt {
namespace {

constexpr std::uint32_t kGroup = 128;

std::string supports(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  const std::uint32_t head_dim = args.query.extents[3];
  if (static_cast<DType>(args.state_dtype) == DType::F16 && head_dim % 8 == 0 && head_dim <= kHeadPart && head_dim != 0)
    return {};
  return "attention: its heads are not of F16 in eights";
}

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

Specialization specialization(const OpCall& call) { return {call.input(0).shape.columns(), 0, 0, kGroup}; }

bool runs_on(const ShaderLimits& limits) { return limits.smallest_subgroup >= 4 && limits.largest_group >= kGroup; }

}  // namespace

extern const ShaderKernel attention_row_shader;
const ShaderKernel attention_row_shader{.supports = supports,
                                        .groups = groups,
                                        .constants = nullptr,
                                        .specialization = specialization,
                                        .runs_on = runs_on,
                                        .rank = 1};

}  // namespace shunt
