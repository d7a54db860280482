#include "ops/experts/experts.h"
#include "ops/shader.h"

namespace shunt {
namespace {

std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  return std::uint64_t{args.tokens} * args.used * ((args.m + kExpertsGroupRows - 1) / kExpertsGroupRows);
}

Specialization specialization(const OpCall& call) { return {experts_arguments(call).weight_dtype}; }

}  // namespace

extern const ShaderKernel experts_shader;
const ShaderKernel experts_shader{supports, groups, nullptr, nullptr, specialization};

}  // namespace shunt
