#include "devices/vulkan/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shunt::vulkan {

VkDescriptorType type_of(std::uint32_t binding) {
  return binding < kOutputBinding ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

DispatchLimits limits_of(const Context& context) {
  const VkPhysicalDeviceLimits& limits = context.properties().limits;
  const Features& features = context.features();
  ShaderLimits shader{.language = ShaderLanguage::spirv, .largest_binding_bytes = limits.maxStorageBufferRange};
  shader.shared_bytes = features.shared_memory_bytes;
  shader.largest_group = features.largest_workgroup;
  if (features.subgroup_arithmetic) shader.smallest_subgroup = features.smallest_subgroup;
  shader.has_f16 = features.f16;
  shader.has_integer_dot = features.integer_dot;
  shader.has_cooperative_matrix = features.multiplies_f16_by_16();
  shader.on_cpu = context.properties().deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  return {shader, std::max<std::uint64_t>(4, limits.minStorageBufferOffsetAlignment),
          limits.minUniformBufferOffsetAlignment};
}

Pipelines::Pipelines(std::shared_ptr<Context> context) : context_(std::move(context)), cache_(context_) {}

Result<std::unique_ptr<Pipelines>> Pipelines::create(std::shared_ptr<Context> context) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(context));
  SHUNT_TRY(pipelines->make_layouts());
  SHUNT_TRY_ASSIGN(pipelines->nothing_, VulkanBuffer::create(context, 16, Place::shared));
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
  if (!pipelines_.empty()) cache_.save();
  context_->release([&call = context_->call(), device = context_->handle(), pipelines = std::move(pipelines_),
                     layout = layout_, set_layout = set_layout_] {
    for (const auto& [kernel, pipeline] : pipelines) call.DestroyPipeline(device, pipeline, nullptr);
    call.DestroyPipelineLayout(device, layout, nullptr);
    call.DestroyDescriptorSetLayout(device, set_layout, nullptr);
  });
}

Result<VkPipeline> Pipelines::of(const SpecializedShader& kernel) {
  VkPipeline& pipeline = pipelines_[kernel];
  if (pipeline != VK_NULL_HANDLE) return pipeline;
  const DeviceFunctions& call = context_->call();
  const Shader& shader = *kernel.shader;
  VkShaderModuleCreateInfo source{};
  source.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  source.codeSize = shader.spirv.size_bytes();
  source.pCode = shader.spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  SHUNT_TRY(check(call.CreateShaderModule(context_->handle(), &source, nullptr, &module), "vkCreateShaderModule"));
  std::array<VkSpecializationMapEntry, kSpecializationConstants> entries{};
  for (std::uint32_t id = 0; id < kSpecializationConstants; ++id)
    entries[id] = {id, id * static_cast<std::uint32_t>(sizeof(std::uint32_t)), sizeof(std::uint32_t)};
  const VkSpecializationInfo constants{kSpecializationConstants, entries.data(), sizeof(kernel.values),
                                       kernel.values.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout_;
  const VkResult result = call.CreateComputePipelines(context_->handle(), cache_.get(), 1, &info, nullptr, &pipeline);
  call.DestroyShaderModule(context_->handle(), module, nullptr);
  SHUNT_TRY(check(result, fmt::format("kernel {}: vkCreateComputePipelines", shader.name)));
  return pipeline;
}

}  // namespace shunt::vulkan
