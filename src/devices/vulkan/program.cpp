#include "devices/vulkan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shunt::vulkan {
namespace {

// A dispatch may have 65535 workgroups along an axis; the second axis takes what is above.
constexpr std::uint64_t kGroupsAlongX = 32768;

Status check(VkResult result, std::string_view what) {
  if (result == VK_SUCCESS) return {};
  return error_of(result, what);
}

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
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
  const DeviceFunctions& call = context_->call();
  for (VkPipeline pipeline : pipelines_) call.DestroyPipeline(context_->handle(), pipeline, nullptr);
  call.DestroyPipelineLayout(context_->handle(), layout_, nullptr);
  call.DestroyDescriptorSetLayout(context_->handle(), set_layout_, nullptr);
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

// One op, ready to be recorded.
struct VulkanProgram::Dispatch {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkDescriptorSet set = VK_NULL_HANDLE;
  std::uint64_t groups = 0;
  std::vector<std::byte> block;
  std::vector<std::uint32_t> constants;
  std::uint64_t block_at = 0;  // in blocks_
  std::uint64_t constants_at = 0;
  std::uint32_t constants_binding = 0;
  std::array<VkDescriptorBufferInfo, kShaderBindings> bound{};
};

Result<std::unique_ptr<VulkanProgram>> VulkanProgram::create(std::shared_ptr<Context> context, Pipelines& pipelines,
                                                             const ProgramRequest& request) {
  std::unique_ptr<VulkanProgram> program(new VulkanProgram(std::move(context), pipelines));
  program->name_ = request.name;
  std::vector<Dispatch> dispatches;
  for (const ProgramOp& op : request.ops) {
    SHUNT_TRY_ASSIGN(Dispatch dispatch, program->plan(op));
    if (dispatch.groups > 0) dispatches.push_back(std::move(dispatch));
  }
  program->place(dispatches);
  SHUNT_TRY_ASSIGN(program->blocks_,
                   VulkanBuffer::create(program->context_, program->block_bytes_, VulkanBuffer::Place::staging));
  SHUNT_TRY(program->write_sets(dispatches));
  SHUNT_TRY(program->record(dispatches));
  SHUNT_TRY_ASSIGN(program->done_, program->context_->make_fence());
  return program;
}

VulkanProgram::~VulkanProgram() {
  const DeviceFunctions& call = context_->call();
  call.DestroyFence(context_->handle(), done_, nullptr);
  call.DestroyDescriptorPool(context_->handle(), sets_, nullptr);
}

Result<VulkanProgram::Dispatch> VulkanProgram::plan(const ProgramOp& op) {
  const VkPhysicalDeviceLimits& limits = context_->properties().limits;
  const ShaderChoice choice = choose_shader(op.call, limits.maxStorageBufferRange);
  if (choice.shader == nullptr) return fail(Code::unsupported, choice.refusal);
  Dispatch dispatch{.groups = choice.shader->kernel->groups(op.call)};
  SHUNT_TRY_ASSIGN(dispatch.pipeline, pipelines_.of(*choice.shader));
  for (std::uint32_t binding = kOutputBinding; binding < kShaderBindings; ++binding)
    dispatch.bound[binding] = {pipelines_.nothing(), 0, VK_WHOLE_SIZE};
  std::array<std::uint32_t, kMaxShaderOperands> offsets{};
  const auto bind = [&](std::uint32_t operand, const Binding& binding) {
    if (binding.bytes == 0) return;
    const std::uint64_t begin = binding.offset - binding.offset % limits.minStorageBufferOffsetAlignment;
    offsets[operand] = static_cast<std::uint32_t>(binding.offset - begin);
    dispatch.bound[kOutputBinding + operand] = {static_cast<VulkanBuffer*>(binding.buffer)->handle(), begin,
                                                aligned(offsets[operand] + binding.bytes, 4)};
  };
  bind(0, op.output);
  for (std::uint32_t input = 0; input < op.inputs.size(); ++input)
    if (binds_input(op.call, input)) bind(input + 1, op.inputs[input]);
  dispatch.block = call_block(op.call, offsets);
  if (choice.shader->kernel->constants != nullptr) dispatch.constants = choice.shader->kernel->constants(op.call);
  // Constants follow the last input that the row has, given or not.
  dispatch.constants_binding = kFirstInputBinding + static_cast<std::uint32_t>(info_of(op.call.op).inputs.size());
  return dispatch;
}

void VulkanProgram::place(std::vector<Dispatch>& dispatches) {
  const VkPhysicalDeviceLimits& limits = context_->properties().limits;
  const std::uint64_t alignment = std::max({std::uint64_t{16}, std::uint64_t{limits.minUniformBufferOffsetAlignment},
                                            std::uint64_t{limits.minStorageBufferOffsetAlignment}});
  block_bytes_ = aligned(sizeof(Parameters), alignment);
  for (Dispatch& dispatch : dispatches) {
    dispatch.block_at = block_bytes_;
    block_bytes_ = aligned(block_bytes_ + dispatch.block.size(), alignment);
    dispatch.constants_at = block_bytes_;
    block_bytes_ = aligned(block_bytes_ + dispatch.constants.size() * sizeof(std::uint32_t), alignment);
  }
}

Status VulkanProgram::write_sets(std::span<Dispatch> dispatches) {
  const DeviceFunctions& call = context_->call();
  const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(1, dispatches.size()));
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kOutputBinding * count},
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, (kShaderBindings - kOutputBinding) * count}};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = count;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  SHUNT_TRY(check(call.CreateDescriptorPool(context_->handle(), &pool, nullptr, &sets_), "vkCreateDescriptorPool"));
  const VkDescriptorSetLayout layout = pipelines_.set_layout();
  for (Dispatch& dispatch : dispatches) {
    std::memcpy(blocks_->host().data() + dispatch.block_at, dispatch.block.data(), dispatch.block.size());
    dispatch.bound[kCallBinding] = {blocks_->handle(), dispatch.block_at, dispatch.block.size()};
    dispatch.bound[kParametersBinding] = {blocks_->handle(), 0, sizeof(Parameters)};
    if (const std::size_t bytes = dispatch.constants.size() * sizeof(std::uint32_t); bytes != 0) {
      std::memcpy(blocks_->host().data() + dispatch.constants_at, dispatch.constants.data(), bytes);
      dispatch.bound[dispatch.constants_binding] = {blocks_->handle(), dispatch.constants_at, bytes};
    }
    VkDescriptorSetAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = sets_;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    SHUNT_TRY(check(call.AllocateDescriptorSets(context_->handle(), &info, &dispatch.set), "vkAllocateDescriptorSets"));
    std::array<VkWriteDescriptorSet, kShaderBindings> writes{};
    for (std::uint32_t binding = 0; binding < kShaderBindings; ++binding) {
      writes[binding].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      writes[binding].dstSet = dispatch.set;
      writes[binding].dstBinding = binding;
      writes[binding].descriptorCount = 1;
      writes[binding].descriptorType = type_of(binding);
      writes[binding].pBufferInfo = &dispatch.bound[binding];
    }
    call.UpdateDescriptorSets(context_->handle(), kShaderBindings, writes.data(), 0, nullptr);
  }
  return {};
}

Status VulkanProgram::record(std::span<const Dispatch> dispatches) {
  const DeviceFunctions& call = context_->call();
  SHUNT_TRY_ASSIGN(commands_, context_->make_commands());
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  SHUNT_TRY(check(call.BeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer"));
  for (const Dispatch& dispatch : dispatches) {
    call.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
    call.CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1, &dispatch.set, 0,
                               nullptr);
    const std::uint64_t x = std::min(dispatch.groups, kGroupsAlongX);
    call.CmdDispatch(commands_, static_cast<std::uint32_t>(x),
                     static_cast<std::uint32_t>((dispatch.groups + x - 1) / x), 1);
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
