#include "devices/shaders/dispatch.h"

#include <algorithm>
#include <cstring>

namespace shunt {
namespace {

// APIs guarantee 65535 workgroups along an axis; the second axis takes the rest.
constexpr std::uint64_t kGroupsAlongX = 32768;

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::array<std::uint32_t, 2> grid_of(std::uint64_t groups) {
  const std::uint64_t x = std::min(groups, kGroupsAlongX);
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x == 0 ? 0 : (groups + x - 1) / x)};
}

std::uint64_t block_alignment(const DispatchLimits& limits) {
  return std::max({std::uint64_t{16}, limits.storage_alignment_bytes, limits.uniform_alignment_bytes});
}

Result<Dispatch> plan_dispatch(const ProgramOp& op, const DispatchLimits& limits) {
  const ShaderChoice choice = choose_shader(op.call, limits.shader);
  if (choice.shader == nullptr) return fail(Code::unsupported, choice.refusal);
  const ShaderKernel& kernel = *choice.shader->kernel;
  Dispatch dispatch{.kernel = specialize(*choice.shader, op.call), .name = op.name};
  dispatch.grid = grid_of(kernel.groups(op.call));
  std::array<std::uint32_t, kMaxShaderOperands> offsets{};
  const auto bind = [&](std::size_t operand, const Binding& binding) {
    if (binding.bytes == 0) return;
    const std::uint64_t begin = binding.offset - binding.offset % limits.storage_alignment_bytes;
    offsets[operand] = static_cast<std::uint32_t>(limits.binds_whole_buffers ? binding.offset : binding.offset - begin);
    dispatch.operands[operand] = {binding.buffer, begin, aligned(binding.offset - begin + binding.bytes, 4)};
  };
  bind(0, op.output);
  for (std::size_t input = 0; input < op.inputs.size(); ++input)
    if (binds_input(op.call, input)) bind(input + 1, op.inputs[input]);
  dispatch.block = call_block(op.call, offsets);
  if (kernel.constants != nullptr) dispatch.constants = kernel.constants(op.call);
  if (kernel.first_pass_words != nullptr) dispatch.first_pass_words = kernel.first_pass_words(op.call);
  // Constants are bound after the last input in the op's row, whether that is present or not.
  dispatch.constants_binding = kFirstInputBinding + static_cast<std::uint32_t>(info_of(op.call.op).inputs.size());
  return dispatch;
}

// Visits the memory that an op touches. State that it changes in place is its output, which it may also read.
template <class Visit>
void visit_accesses(const ProgramOp& op, const Visit& visit) {
  visit(Access::write(op.output));
  for (const Binding& input : op.inputs) visit(Access::read(input));
}

}  // namespace

void DispatchPlan::write_blocks(std::span<std::byte> blocks) const {
  for (const Dispatch& dispatch : dispatches) {
    std::memcpy(blocks.data() + dispatch.block_at, dispatch.block.data(), dispatch.block.size());
    const auto constants = std::as_bytes(std::span(dispatch.constants));
    if (!constants.empty()) std::memcpy(blocks.data() + dispatch.constants_at, constants.data(), constants.size());
  }
}

Result<DispatchPlan> plan_dispatches(std::span<const ProgramOp> ops, const DispatchLimits& limits) {
  const std::uint64_t alignment = block_alignment(limits);
  DispatchPlan plan{.block_bytes = aligned(sizeof(Parameters), alignment)};
  Hazards since_barrier;
  for (const ProgramOp& op : ops) {
    SHUNT_TRY_ASSIGN(Dispatch dispatch, plan_dispatch(op, limits));
    if (dispatch.grid[0] == 0) continue;
    dispatch.op = static_cast<std::uint32_t>(&op - ops.data());
    visit_accesses(op, [&](const Access& access) { dispatch.needs_barrier |= since_barrier.has(access); });
    if (dispatch.needs_barrier) since_barrier.clear();
    visit_accesses(op, [&](const Access& access) {
      since_barrier.note(access);
      plan.hazards.note(access);
    });
    dispatch.block_at = plan.block_bytes;
    dispatch.constants_at = aligned(dispatch.block_at + dispatch.block.size(), alignment);
    plan.block_bytes = aligned(dispatch.constants_at + dispatch.constants.size() * sizeof(std::uint32_t), alignment);
    plan.dispatches.push_back(std::move(dispatch));
  }
  return plan;
}

Support dispatch_support(std::span<const OpCall> run, const DispatchLimits& limits) {
  const std::uint64_t alignment = block_alignment(limits);
  Support support{.scratch_bytes = aligned(sizeof(Parameters), alignment)};
  for (const OpCall& call : run) {
    ShaderChoice choice = choose_shader(call, limits.shader);
    if (choice.shader == nullptr) return {.reason = std::move(choice.refusal)};
    support.scratch_bytes += aligned(kCallBlockBytes, alignment);
    if (choice.shader->kernel->constants != nullptr)
      support.scratch_bytes +=
          aligned(choice.shader->kernel->constants(call).size() * sizeof(std::uint32_t), alignment);
  }
  return support;
}

}  // namespace shunt
