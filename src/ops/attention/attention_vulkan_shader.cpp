// The kernel of attention that only Vulkan has.
#include "ops/attention/attention.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

constexpr GroupNeeds kNeeds = {.group = 128, .smallest_subgroup = 4};

std::string supports(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  const std::uint32_t head_dim = args.query.extents[3];
  if (static_cast<DType>(args.state_dtype) == DType::F16 && head_dim % 8 == 0 && head_dim <= kHeadPart && head_dim != 0)
    return {};
  return "attention: its heads are not of F16 in eights";
}

Specialization specialization(const OpCall& call) { return {call.input(0).shape.columns(), 0, 0, kNeeds.group}; }

// Of each tile of as many positions as a workgroup has invocations: the parts of its subgroups, and the positions, four
// or more at a time.
std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  constexpr std::uint64_t kParts = kNeeds.group / kNeeds.smallest_subgroup;
  constexpr std::uint64_t kOfTile = 1 + 2 * kParts;
  return (visible_at_most(call) / kNeeds.group + 1) * kOfTile + kParts + kNeeds.group;
}

}  // namespace

extern const ShaderKernel attention_row_shader;
const ShaderKernel attention_row_shader{.supports = supports,
                                        .groups = group_for_each_row,
                                        .specialization = specialization,
                                        .runs_on = offers<kNeeds>,
                                        .rank = 1,
                                        .rounds = rounds};

}  // namespace shunt
