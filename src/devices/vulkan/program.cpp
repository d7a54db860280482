#include "devices/vulkan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shunt::vulkan {
namespace {

// What a dispatch wrote, for those behind it.
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
  SHUNT_TRY_ASSIGN(program->commands_, program->context_->compute().make_commands());
  SHUNT_TRY(program->record(program->commands_, VK_NULL_HANDLE));
  return program;
}

VulkanProgram::~VulkanProgram() {
  context_->release([context = context_.get(), sets = sets_, commands = std::array{commands_, timed_}, times = times_] {
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

// What the host addresses anyway need not be brought.
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

Status VulkanProgram::record(VkCommandBuffer commands, VkQueryPool times) const {
  const DeviceFunctions& call = context_->call();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  SHUNT_TRY(check(call.BeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer"));
  const bool timed = times != VK_NULL_HANDLE;
  std::uint32_t time = 0;
  const auto write_time = [&] {
    call.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times, time++);
  };
  if (timed) call.CmdResetQueryPool(commands, times, 0, static_cast<std::uint32_t>(steps_.size()) + 1);
  full_barrier(call, commands);
  if (timed) write_time();
  for (const Step& step : steps_) {
    if (step.needs_barrier || timed) dispatch_barrier(call, commands);
    call.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, step.pipeline);
    call.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1, &step.set, 0,
                               nullptr);
    call.CmdDispatch(commands, step.grid[0], step.grid[1], 1);
    if (timed) write_time();
  }
  if (!results_.empty()) full_barrier(call, commands);
  for (const Brought& result : results_) {
    const VkBufferCopy region{result.buffer->first_byte() + result.offset, result.place, result.bytes};
    call.CmdCopyBuffer(commands, result.buffer->handle()->get(), result.piece->handle()->get(), 1, &region);
  }
  host_barrier(call, commands);
  return check(call.EndCommandBuffer(commands), "vkEndCommandBuffer");
}

Status VulkanProgram::record_timed() {
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = static_cast<std::uint32_t>(steps_.size()) + 1;
  SHUNT_TRY(check(context_->call().CreateQueryPool(context_->handle(), &info, nullptr, &times_), "vkCreateQueryPool"));
  SHUNT_TRY_ASSIGN(timed_, context_->compute().make_commands());
  return record(timed_, times_);
}

Result<Moment> VulkanProgram::submit(Transfer& transfer, const Submission& submission) {
  is_timed_ = trace_.wants_ops(submission) && context_->compute().place().timestamp_bits != 0;
  if (is_timed_ && timed_ == VK_NULL_HANDLE) SHUNT_TRY(record_timed());
  std::memcpy(blocks_->host().data(), &submission.parameters, sizeof(submission.parameters));
  start_ns_ = trace::now_ns();
  number_ = submission.step;
  return transfer.submit(is_timed_ ? timed_ : commands_, touches_, results_);
}

void VulkanProgram::finish(const Status& status) const {
  const std::uint64_t end_ns = trace::now_ns();
  trace_.record_program(start_ns_, end_ns, number_, status);
  if (is_timed_ && status) trace_ops(end_ns);
}

// By the device's clock, of which only differences are known: the last op ended when the program did.
void VulkanProgram::trace_ops(std::uint64_t end_ns) const {
  std::vector<std::uint64_t> times(steps_.size() + 1);
  const auto bytes = times.size() * sizeof(std::uint64_t);
  if (context_->call().GetQueryPoolResults(context_->handle(), times_, 0, static_cast<std::uint32_t>(times.size()),
                                           bytes, times.data(), sizeof(std::uint64_t),
                                           VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
    return;
  const std::uint32_t bits = context_->compute().place().timestamp_bits;
  const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const auto period_ns = static_cast<double>(context_->properties().limits.timestampPeriod);
  const auto since_first = [&](std::size_t index) {
    return static_cast<std::uint64_t>(static_cast<double>((times[index] - times[0]) & mask) * period_ns);
  };
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
