// A device's compiled kernels, each made on first use. Owned by the device; one thread at a time.
#pragma once

#include <map>
#include <memory>

#include "devices/shaders/dispatch.h"
#include "devices/vulkan/buffer.h"
#include "devices/vulkan/pipeline_cache.h"

namespace shunt::vulkan {

class Pipelines {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Pipelines>> create(std::shared_ptr<Context> context);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  [[nodiscard]] Result<VkPipeline> of(const SpecializedShader& kernel);
  [[nodiscard]] VkPipelineLayout layout() const { return layout_; }
  [[nodiscard]] VkDescriptorSetLayout set_layout() const { return set_layout_; }
  // Bound to a kernel's input that a call does not have.
  [[nodiscard]] VkBuffer nothing() const { return nothing_->handle()->get(); }

 private:
  explicit Pipelines(std::shared_ptr<Context> context);
  [[nodiscard]] Status make_layouts();

  std::shared_ptr<Context> context_;
  PipelineCache cache_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::map<SpecializedShader, VkPipeline> pipelines_;
  std::unique_ptr<VulkanBuffer> nothing_;
};

// Returns the descriptor type of a kernel's binding.
[[nodiscard]] VkDescriptorType type_of(std::uint32_t binding);

[[nodiscard]] DispatchLimits limits_of(const Context& context);

}  // namespace shunt::vulkan
