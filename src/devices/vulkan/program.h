// A run of ops as one recorded command buffer: what changes from step to step is a block of parameters in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/dispatch.h"
#include "devices/vulkan/context.h"

namespace shunt::vulkan {

// The compiled kernels of a device, each made when it is first used. Owned by the device.
class Pipelines {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Pipelines>> create(std::shared_ptr<Context> context);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  [[nodiscard]] Result<VkPipeline> of(const Shader& shader);
  [[nodiscard]] VkPipelineLayout layout() const { return layout_; }
  [[nodiscard]] VkDescriptorSetLayout set_layout() const { return set_layout_; }
  // Bound where a kernel has an input that a call has not.
  [[nodiscard]] VkBuffer nothing() const { return nothing_->handle(); }

 private:
  explicit Pipelines(std::shared_ptr<Context> context);
  [[nodiscard]] Status make_layouts();

  std::shared_ptr<Context> context_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::vector<VkPipeline> pipelines_;  // one per entry of shaders()
  std::unique_ptr<VulkanBuffer> nothing_;
};

[[nodiscard]] DispatchLimits limits_of(const Context& context);

class VulkanProgram final : public Program {
 public:
  // The buffers and `pipelines` must outlive it. Errors: unsupported where an op has no kernel, out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<VulkanProgram>> create(std::shared_ptr<Context> context,
                                                                     Pipelines& pipelines,
                                                                     const ProgramRequest& request);
  ~VulkanProgram() override;
  VulkanProgram(const VulkanProgram&) = delete;
  VulkanProgram& operator=(const VulkanProgram&) = delete;

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return blocks_->bytes(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] VkFence done() const { return done_; }
  [[nodiscard]] Status submit(const Parameters& parameters);

 private:
  VulkanProgram(std::shared_ptr<Context> context, Pipelines& pipelines)
      : context_(std::move(context)), pipelines_(pipelines) {}
  [[nodiscard]] Status make_sets(std::size_t count);
  [[nodiscard]] Result<VkDescriptorSet> make_set(const Dispatch& dispatch);
  [[nodiscard]] Status record(std::span<const Dispatch> dispatches);

  std::shared_ptr<Context> context_;
  Pipelines& pipelines_;
  std::string name_;
  std::unique_ptr<VulkanBuffer> blocks_;
  VkDescriptorPool sets_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence done_ = VK_NULL_HANDLE;
};

}  // namespace shunt::vulkan
