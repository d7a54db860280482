#include "devices/vulkan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shunt::vulkan {
namespace {

Status check(VkResult result, std::string_view what) {
  if (result == VK_SUCCESS) return {};
  return error_of(result, what);
}

VkDescriptorType type_of(std::uint32_t binding) {
  return binding < kOutputBinding ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

void barrier(const DeviceFunctions& call, VkCommandBuffer commands, VkPipelineStageFlags to, VkAccessFlags reads) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_SHADER_READ_BIT;
  memory.dstAccessMask = reads;
  call.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace

Pipelines::Pipelines(std::shared_ptr<Context> context) : context_(std::move(context)), pipelines_(shaders().size()) {}

Result<std::unique_ptr<Pipelines>> Pipelines::create(std::shared_ptr<Context> context) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(context));
  SHUNT_TRY(pipelines->make_layouts());
  SHUNT_TRY_ASSIGN(pipelines->nothing_, VulkanBuffer::create(std::move(context), 16, VulkanBuffer::Place::device));
  return pipelines;
}

Status Pipelines::make_layouts() {
  std::array<VkDescriptorSetLayoutBinding, kShaderBindings> bindings{};
  for (std::uint32_t binding = 0; binding < kShaderBindings; ++binding) {
    bindings[binding].binding = binding;
    bindings[binding].descriptorType = type_of(binding);
    bindings[binding].descriptorCount = 1;
    bindings[binding].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = kShaderBindings;
  set.pBindings = bindings.data();
  SHUNT_TRY(check(context_->call().CreateDescriptorSetLayout(context_->handle(), &set, nullptr, &set_layout_),
                  "vkCreateDescriptorSetLayout"));
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  return check(context_->call().CreatePipelineLayout(context_->handle(), &layout, nullptr, &layout_),
               "vkCreatePipelineLayout");
}

Pipelines::~Pipelines() {
  context_->release([&call = context_->call(), device = context_->handle(), pipelines = std::move(pipelines_),
                     layout = layout_, set_layout = set_layout_] {
    for (VkPipeline pipeline : pipelines) call.DestroyPipeline(device, pipeline, nullptr);
    call.DestroyPipelineLayout(device, layout, nullptr);
    call.DestroyDescriptorSetLayout(device, set_layout, nullptr);
  });
}

Result<VkPipeline> Pipelines::of(const Shader& shader) {
  VkPipeline& pipeline = pipelines_[static_cast<std::size_t>(&shader - shaders().data())];
  if (pipeline != VK_NULL_HANDLE) return pipeline;
  const DeviceFunctions& call = context_->call();
  VkShaderModuleCreateInfo source{};
  source.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  source.codeSize = shader.spirv.size_bytes();
  source.pCode = shader.spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  SHUNT_TRY(check(call.CreateShaderModule(context_->handle(), &source, nullptr, &module), "vkCreateShaderModule"));
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = layout_;
  const VkResult result = call.CreateComputePipelines(context_->handle(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  call.DestroyShaderModule(context_->handle(), module, nullptr);
  SHUNT_TRY(check(result, fmt::format("kernel {}: vkCreateComputePipelines", shader.family)));
  return pipeline;
}

DispatchLimits limits_of(const Context& context) {
  const VkPhysicalDeviceLimits& limits = context.properties().limits;
  return {limits.maxStorageBufferRange, std::max<std::uint64_t>(4, limits.minStorageBufferOffsetAlignment),
          limits.minUniformBufferOffsetAlignment};
}

Result<std::unique_ptr<VulkanProgram>> VulkanProgram::create(std::shared_ptr<Context> context, Pipelines& pipelines,
                                                             const ProgramRequest& request) {
  SHUNT_TRY_ASSIGN(const DispatchPlan plan, plan_dispatches(request.ops, limits_of(*context)));
  std::unique_ptr<VulkanProgram> program(new VulkanProgram(std::move(context), pipelines));
  program->name_ = request.name;
  SHUNT_TRY_ASSIGN(program->blocks_,
                   VulkanBuffer::create(program->context_, plan.block_bytes, VulkanBuffer::Place::staging));
  plan.write_blocks(program->blocks_->host());
  SHUNT_TRY(program->make_sets(plan.dispatches.size()));
  SHUNT_TRY(program->record(plan.dispatches));
  SHUNT_TRY_ASSIGN(program->done_, program->context_->make_fence());
  return program;
}

VulkanProgram::~VulkanProgram() {
  context_->release([&call = context_->call(), device = context_->handle(), pool = context_->command_pool(),
                     fence = done_, sets = sets_, commands = commands_] {
    call.DestroyFence(device, fence, nullptr);
    call.DestroyDescriptorPool(device, sets, nullptr);
    if (commands != VK_NULL_HANDLE) call.FreeCommandBuffers(device, pool, 1, &commands);
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
  std::array<VkDescriptorBufferInfo, kShaderBindings> bound{};
  bound[kCallBinding] = {blocks_->handle(), dispatch.block_at, dispatch.block.size()};
  bound[kParametersBinding] = {blocks_->handle(), 0, sizeof(Parameters)};
  for (std::uint32_t operand = 0; operand < kMaxShaderOperands; ++operand) {
    const Binding& binding = dispatch.operands[operand];
    bound[kOutputBinding + operand] = {pipelines_.nothing(), 0, VK_WHOLE_SIZE};
    if (binding.buffer != nullptr)
      bound[kOutputBinding + operand] = {static_cast<VulkanBuffer*>(binding.buffer)->handle(), binding.offset,
                                         binding.bytes};
  }
  if (!dispatch.constants.empty())
    bound[dispatch.constants_binding] = {blocks_->handle(), dispatch.constants_at,
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

Status VulkanProgram::record(std::span<const Dispatch> dispatches) {
  const DeviceFunctions& call = context_->call();
  SHUNT_TRY_ASSIGN(commands_, context_->make_commands());
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  SHUNT_TRY(check(call.BeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer"));
  for (const Dispatch& dispatch : dispatches) {
    SHUNT_TRY_ASSIGN(const VkPipeline pipeline, pipelines_.of(*dispatch.shader));
    SHUNT_TRY_ASSIGN(const VkDescriptorSet set, make_set(dispatch));
    call.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    call.CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1, &set, 0, nullptr);
    call.CmdDispatch(commands_, dispatch.grid[0], dispatch.grid[1], 1);
    barrier(call, commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
  }
  barrier(call, commands_, VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT);
  return check(call.EndCommandBuffer(commands_), "vkEndCommandBuffer");
}

Status VulkanProgram::submit(const Parameters& parameters) {
  std::memcpy(blocks_->host().data(), &parameters, sizeof(parameters));
  return context_->submit(commands_, done_);
}

}  // namespace shunt::vulkan
