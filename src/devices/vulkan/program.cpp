#include "devices/vulkan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace shunt::vulkan {
namespace {

// Makes what a dispatch wrote visible to the dispatches after it.
void dispatch_barrier(const DeviceFunctions& call, VkCommandBuffer commands) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  call.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                          &memory, 0, nullptr, 0, nullptr);
}

}  // namespace

Result<std::unique_ptr<VulkanProgram>> VulkanProgram::create(std::shared_ptr<Context> context, Pipelines& pipelines,
                                                             const ProgramRequest& request, ProgramTrace trace) {
  SHUNT_TRY_ASSIGN(DispatchPlan plan, plan_dispatches(request.ops, limits_of(*context)));
  std::unique_ptr<VulkanProgram> program(new VulkanProgram(std::move(context), pipelines, std::move(trace)));
  program->name_ = request.name;
  program->touches_ = std::make_shared<const Hazards>(std::move(plan.hazards));
  SHUNT_TRY_ASSIGN(program->blocks_, VulkanBuffer::create(program->context_, plan.block_bytes, Place::shared));
  plan.write_blocks(program->blocks_->host());
  SHUNT_TRY(program->make_sets(plan.dispatches.size()));
  for (const Dispatch& dispatch : plan.dispatches) {
    SHUNT_TRY_ASSIGN(const VkPipeline pipeline, pipelines.of(dispatch.kernel));
    SHUNT_TRY_ASSIGN(const VkDescriptorSet set, program->make_set(dispatch));
    program->steps_.push_back({pipeline, set, dispatch.grid, dispatch.op, dispatch.needs_barrier});
  }
  SHUNT_TRY(program->make_results(request.results));
  SHUNT_TRY(program->record(Timing::none));
  return program;
}

VulkanProgram::~VulkanProgram() {
  context_->release([context = context_.get(), sets = sets_, commands = commands_, times = times_] {
    context->call().DestroyDescriptorPool(context->handle(), sets, nullptr);
    context->call().DestroyQueryPool(context->handle(), times, nullptr);
    for (VkCommandBuffer each : commands)
      if (each != VK_NULL_HANDLE) context->compute().discard(each);
  });
}

Status VulkanProgram::make_sets(std::size_t count) {
  const auto sets = static_cast<std::uint32_t>(std::max<std::size_t>(1, count));
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kOutputBinding * sets},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, (kShaderBindings - kOutputBinding) * sets}};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = sets;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  return check(context_->call().CreateDescriptorPool(context_->handle(), &pool, nullptr, &sets_),
               "vkCreateDescriptorPool");
}

Result<VkDescriptorSet> VulkanProgram::make_set(const Dispatch& dispatch) {
  const VkBuffer blocks = blocks_->handle()->get();
  std::array<VkDescriptorBufferInfo, kShaderBindings> bound{};
  bound[kCallBinding] = {blocks, dispatch.block_at, dispatch.block.size()};
  bound[kParametersBinding] = {blocks, 0, sizeof(Parameters)};
  for (std::uint32_t operand = 0; operand < kMaxShaderOperands; ++operand) {
    const Binding& binding = dispatch.operands[operand];
    bound[kOutputBinding + operand] = {pipelines_.nothing(), 0, VK_WHOLE_SIZE};
    if (binding.buffer == nullptr) continue;
    const auto& buffer = static_cast<const VulkanBuffer&>(*binding.buffer);
    bound[kOutputBinding + operand] = {buffer.handle()->get(), buffer.first_byte() + binding.offset, binding.bytes};
  }
  if (!dispatch.constants.empty())
    bound[dispatch.constants_binding] = {blocks, dispatch.constants_at,
                                         dispatch.constants.size() * sizeof(std::uint32_t)};
  const DeviceFunctions& call = context_->call();
  const VkDescriptorSetLayout layout = pipelines_.set_layout();
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = sets_;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  SHUNT_TRY(check(call.AllocateDescriptorSets(context_->handle(), &info, &set), "vkAllocateDescriptorSets"));
  std::array<VkWriteDescriptorSet, kShaderBindings> writes{};
  for (std::uint32_t binding = 0; binding < kShaderBindings; ++binding) {
    writes[binding].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[binding].dstSet = set;
    writes[binding].dstBinding = binding;
    writes[binding].descriptorCount = 1;
    writes[binding].descriptorType = type_of(binding);
    writes[binding].pBufferInfo = &bound[binding];
  }
  call.UpdateDescriptorSets(context_->handle(), kShaderBindings, writes.data(), 0, nullptr);
  return set;
}

// Results that the host can address need no copy.
Status VulkanProgram::make_results(std::span<const Binding> results) {
  std::uint64_t bytes = 0;
  for (const Binding& result : results) {
    auto* buffer = static_cast<VulkanBuffer*>(result.buffer);
    if (!buffer->host().empty()) continue;
    results_.push_back({buffer, result.offset, result.bytes, nullptr, bytes});
    bytes += (result.bytes + 3) / 4 * 4;
  }
  if (results_.empty()) return {};
  SHUNT_TRY_ASSIGN(const std::shared_ptr<VulkanBuffer> piece, VulkanBuffer::create(context_, bytes, Place::read_back));
  for (Brought& result : results_) result.piece = piece;
  return {};
}

Status VulkanProgram::record(Timing timing) {
  if (commands_[std::to_underlying(timing)] != VK_NULL_HANDLE) return {};
  if (timing != Timing::none && times_ == VK_NULL_HANDLE) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = static_cast<std::uint32_t>(steps_.size()) + 1;
    SHUNT_TRY(
        check(context_->call().CreateQueryPool(context_->handle(), &info, nullptr, &times_), "vkCreateQueryPool"));
  }
  SHUNT_TRY_ASSIGN(const VkCommandBuffer commands, context_->compute().make_commands());
  Status written = write_commands(commands, timing);
  if (written)
    commands_[std::to_underlying(timing)] = commands;
  else
    context_->compute().discard(commands);
  return written;
}

Status VulkanProgram::write_commands(VkCommandBuffer commands, Timing timing) const {
  const DeviceFunctions& call = context_->call();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  SHUNT_TRY(check(call.BeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer"));
  const auto last = static_cast<std::uint32_t>(steps_.size());
  const auto write_time = [&](std::uint32_t index) {
    call.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times_, index);
  };
  if (timing != Timing::none) call.CmdResetQueryPool(commands, times_, 0, last + 1);
  full_barrier(call, commands);
  if (timing == Timing::each) write_time(0);
  for (std::uint32_t index = 0; index < last; ++index) {
    const Launch& step = steps_[index];
    if (step.needs_barrier || timing == Timing::each) dispatch_barrier(call, commands);
    call.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, step.pipeline);
    call.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1, &step.set, 0,
                               nullptr);
    call.CmdDispatch(commands, step.grid[0], step.grid[1], 1);
    if (timing == Timing::each) write_time(index + 1);
  }
  if (!results_.empty()) full_barrier(call, commands);
  for (const Brought& result : results_) {
    const VkBufferCopy region{result.buffer->first_byte() + result.offset, result.place, result.bytes};
    call.CmdCopyBuffer(commands, result.buffer->handle()->get(), result.piece->handle()->get(), 1, &region);
  }
  if (timing == Timing::end) write_time(last);
  host_barrier(call, commands);
  return check(call.EndCommandBuffer(commands), "vkEndCommandBuffer");
}

VulkanProgram::Timing VulkanProgram::timing_for(const Submission& submission) const {
  if (context_->compute().place().timestamp_bits == 0) return Timing::none;
  if (trace_.wants_ops(submission)) return Timing::each;
  return trace_.is_on() && context_->clock().is_known() ? Timing::end : Timing::none;
}

Result<Moment> VulkanProgram::submit(Transfer& transfer, const Submission& submission) {
  timing_ = timing_for(submission);
  SHUNT_TRY(record(timing_));
  std::memcpy(blocks_->host().data(), &submission.parameters, sizeof(submission.parameters));
  start_ns_ = trace::now_ns();
  number_ = submission.step;
  return transfer.submit(commands_[std::to_underlying(timing_)], touches_, results_);
}

// Work that ended while the host was busy is timed by the device's clock.
void VulkanProgram::finish(const Status& status) const {
  std::uint64_t end_ns = trace::now_ns();
  const std::vector<std::uint64_t> times =
      timing_ == Timing::none || !status ? std::vector<std::uint64_t>() : read_times();
  if (!times.empty()) end_ns = std::clamp(context_->clock().host_ns(times.back()).value_or(end_ns), start_ns_, end_ns);
  trace_.record_program(start_ns_, end_ns, number_, status);
  if (timing_ == Timing::each && !times.empty()) trace_ops(times, end_ns);
}

// Returns the timestamps that were written, the last one at the end; empty if they cannot be read.
std::vector<std::uint64_t> VulkanProgram::read_times() const {
  const std::size_t count = timing_ == Timing::each ? steps_.size() + 1 : 1;
  const auto first = static_cast<std::uint32_t>(steps_.size() + 1 - count);
  std::vector<std::uint64_t> times(count);
  if (context_->call().GetQueryPoolResults(context_->handle(), times_, first, static_cast<std::uint32_t>(count),
                                           count * sizeof(std::uint64_t), times.data(), sizeof(std::uint64_t),
                                           VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
    times.clear();
  return times;
}

void VulkanProgram::trace_ops(std::span<const std::uint64_t> times, std::uint64_t end_ns) const {
  const auto since_first = [&](std::size_t index) { return context_->clock().between_ns(times[0], times[index]); };
  // The two clocks may drift apart a little.
  const std::uint64_t took = std::min(since_first(steps_.size()), end_ns - start_ns_);
  const auto at_ns = [&](std::size_t index) { return end_ns - took + std::min(took, since_first(index)); };
  for (std::size_t step = 0; step < steps_.size();) {
    const std::size_t first = step;
    while (step < steps_.size() && steps_[step].op == steps_[first].op) ++step;
    trace_.record_op(steps_[first].op, at_ns(first), at_ns(step), number_);
  }
}

}  // namespace shunt::vulkan
