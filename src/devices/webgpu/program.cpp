#include "devices/webgpu/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/webgpu/commands.h"

namespace shunt::webgpu {
namespace {

bool overlap(const Binding& a, const Binding& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

BufferHandle handle_of(const Binding& binding) { return static_cast<WebGpuBuffer*>(binding.buffer)->handle(); }

bool is_constants(const Dispatch& dispatch, std::uint32_t binding) {
  return !dispatch.constants.empty() && binding == dispatch.constants_binding;
}

// Weights have buffers of their own and occur once among a call's operands.
std::uint64_t most_moved_bytes(const OpCall& call) {
  std::uint64_t bytes = kMaxShaderOperands * kAlignment;
  for (std::size_t input = 0; input < call.inputs.size(); ++input)
    if (binds_input(call, input) && call.input(input).kind != TensorKind::weight)
      bytes += aligned(call.input(input).span_bytes() + kAlignment);
  return bytes;
}

}  // namespace

DispatchLimits limits_of(const Context& context) {
  return {.shader = {.language = ShaderLanguage::wgsl,
                     .largest_binding_bytes = context.largest_binding_bytes(),
                     .on_cpu = context.adapter().type == AdapterType::cpu},
          .storage_alignment_bytes = kAlignment,
          .uniform_alignment_bytes = kAlignment};
}

Support program_support(std::span<const OpCall> run, const DispatchLimits& limits) {
  Support support = dispatch_support(run, limits);
  if (!support) return support;
  std::uint64_t most = 0;
  for (const OpCall& call : run) most = std::max(most, most_moved_bytes(call));
  support.scratch_bytes = 2 * support.scratch_bytes + most;  // uniform blocks, and constants in the same layout
  return support;
}

Result<std::unique_ptr<WebGpuProgram>> WebGpuProgram::create(std::shared_ptr<Context> context, Pipelines& pipelines,
                                                             const ProgramRequest& request) {
  SHUNT_TRY_ASSIGN(const DispatchPlan plan, plan_dispatches(request.ops, limits_of(*context)));
  std::unique_ptr<WebGpuProgram> program(new WebGpuProgram(std::move(context)));
  program->name_ = request.name;
  SHUNT_TRY(program->make_steps(plan, pipelines));
  SHUNT_TRY(program->make_buffers(plan));
  SHUNT_TRY(program->make_groups(plan));
  return program;
}

std::vector<WebGpuProgram::Moved> WebGpuProgram::moved_of(const Dispatch& dispatch, const Pipeline& pipeline) {
  std::vector<Moved> moved;
  std::vector<Binding> kept;
  std::uint64_t at = 0;
  for (const KernelBinding& binding : pipeline.bindings) {
    if (binding.type != BufferBindingType::storage || is_constants(dispatch, binding.number)) continue;
    const Binding& operand = dispatch.operands[binding.number - kOutputBinding];
    const bool is_free = std::ranges::none_of(kept, [&](const Binding& other) { return overlap(operand, other); });
    if (operand.buffer != nullptr && is_free) {
      kept.push_back(operand);
      continue;
    }
    moved.push_back({binding.number, operand, at});
    at += aligned(std::max<std::uint64_t>(operand.bytes, 1));
  }
  return moved;
}

Status WebGpuProgram::make_steps(const DispatchPlan& plan, Pipelines& pipelines) {
  for (const Dispatch& dispatch : plan.dispatches) {
    SHUNT_TRY_ASSIGN(const Pipeline* pipeline, pipelines.of(dispatch.kernel));
    steps_.push_back(
        {.pipeline = pipeline, .grid = dispatch.grid, .op = dispatch.op, .moved = moved_of(dispatch, *pipeline)});
  }
  return {};
}

Status WebGpuProgram::make_buffers(const DispatchPlan& plan) {
  std::vector<std::byte> blocks(plan.block_bytes);
  plan.write_blocks(blocks);
  const auto make = [&](std::uint64_t bytes, BufferUsage usage) {
    return WebGpuBuffer::create(context_, bytes, usage | kCopyTarget);
  };
  SHUNT_TRY_ASSIGN(blocks_, make(plan.block_bytes, kUniform));
  context_->call().QueueWriteBuffer(context_->queue(), blocks_->handle(), 0, blocks.data(), blocks.size());
  if (std::ranges::any_of(plan.dispatches, [](const Dispatch& each) { return !each.constants.empty(); })) {
    SHUNT_TRY_ASSIGN(constants_, make(plan.block_bytes, kStorage));
    context_->call().QueueWriteBuffer(context_->queue(), constants_->handle(), 0, blocks.data(), blocks.size());
  }
  std::uint64_t most = 0;
  for (const Launch& step : steps_)
    if (!step.moved.empty()) most = std::max(most, step.moved.back().at + aligned(step.moved.back().from.bytes + 1));
  if (most == 0) return {};
  SHUNT_TRY_ASSIGN(scratch_, make(most, kStorage));
  return {};
}

Status WebGpuProgram::make_groups(const DispatchPlan& plan) {
  context_->open_scopes();
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    Launch& step = steps_[index];
    std::vector<BindGroupEntry> entries;
    for (const KernelBinding& binding : step.pipeline->bindings)
      entries.push_back(entry_of(plan.dispatches[index], step, binding.number));
    step.group = make_group(*context_, *step.pipeline, entries);
  }
  const auto outcome = context_->close_scopes();
  if (Status made = context_->settle(*outcome); !made)
    return fail(made.error().code, fmt::format("program \"{}\": {}", name_, made.error().message));
  return {};
}

BindGroupEntry WebGpuProgram::entry_of(const Dispatch& dispatch, const Launch& step, std::uint32_t binding) const {
  BindGroupEntry entry{.binding = binding};
  const auto bind = [&](BufferHandle buffer, std::uint64_t offset, std::uint64_t bytes) {
    entry.buffer = buffer;
    entry.offset = offset;
    entry.bytes = bytes;
  };
  if (binding == kCallBinding) {
    bind(blocks_->handle(), dispatch.block_at, dispatch.block.size());
  } else if (binding == kParametersBinding) {
    bind(blocks_->handle(), 0, sizeof(Parameters));
  } else if (is_constants(dispatch, binding)) {
    bind(constants_->handle(), dispatch.constants_at, dispatch.constants.size() * sizeof(std::uint32_t));
  } else if (const auto moved = std::ranges::find(step.moved, binding, &Moved::binding); moved != step.moved.end()) {
    bind(scratch_->handle(), moved->at, std::max<std::uint64_t>(moved->from.bytes, 4));
  } else {
    const Binding& operand = dispatch.operands[binding - kOutputBinding];
    bind(handle_of(operand), operand.offset, operand.bytes);
  }
  return entry;
}

std::uint64_t WebGpuProgram::scratch_bytes() const {
  return blocks_->bytes() + (constants_ ? constants_->bytes() : 0) + (scratch_ ? scratch_->bytes() : 0);
}

std::shared_ptr<Outcome> WebGpuProgram::submit(const Submission& submission) {
  context_->open_scopes();
  context_->call().QueueWriteBuffer(context_->queue(), blocks_->handle(), 0, &submission.parameters,
                                    sizeof(submission.parameters));
  Commands commands(*context_);
  for (const Launch& step : steps_) {
    if (!submission.includes(step.op)) continue;
    for (const Moved& moved : step.moved)
      if (moved.from.buffer != nullptr)
        commands.copy(handle_of(moved.from), moved.from.offset, scratch_->handle(), moved.at, moved.from.bytes);
    commands.dispatch(*step.pipeline, step.group.get(), step.grid);
  }
  commands.submit();
  auto outcome = context_->close_scopes();
  context_->await_work(outcome);
  return outcome;
}

}  // namespace shunt::webgpu
