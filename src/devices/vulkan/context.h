// One logical device of Vulkan: its queue, its memory, and commands that are waited for.
//
// Buffers and programs share it, so that handles live as long as what was made with them. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "devices/device.h"
#include "devices/vulkan/api.h"

namespace shunt::vulkan {

class Context {
 public:
  // Errors: unsupported for a device without compute queues or 1.1; those of vkCreateDevice.
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(std::shared_ptr<Instance> instance,
                                                               VkPhysicalDevice physical);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const DeviceFunctions& call() const { return functions_; }
  [[nodiscard]] VkDevice handle() const { return device_; }
  [[nodiscard]] VkCommandPool command_pool() const { return pool_; }
  [[nodiscard]] const VkPhysicalDeviceProperties& properties() const { return properties_; }
  [[nodiscard]] const VkPhysicalDeviceIDProperties& ids() const { return ids_; }
  // Of the largest heap on the device.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  // The memory type with all of `wanted`, the one that also has `liked` if there is one; nothing if none fits.
  [[nodiscard]] std::optional<std::uint32_t> memory_type(std::uint32_t allowed, VkMemoryPropertyFlags wanted,
                                                         VkMemoryPropertyFlags liked) const;
  // All memory is the host's own: buffers are mapped, and nothing is staged.
  [[nodiscard]] bool shares_host_memory() const {
    return properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ||
           properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }

  [[nodiscard]] Result<VkFence> make_fence() const;
  [[nodiscard]] Result<VkCommandBuffer> make_commands() const;
  [[nodiscard]] Status submit(VkCommandBuffer commands, VkFence fence) const;
  // Frees handles: now, or after abandon() once the device is idle at the end.
  void release(std::function<void()> free);
  // From now on nothing is freed that a submission nobody waits for might still use.
  void abandon() { abandoned_ = true; }
  // Records, submits and waits.
  [[nodiscard]] Status run_now(const std::function<void(VkCommandBuffer)>& record);

 private:
  Context() = default;
  [[nodiscard]] Status start();

  std::shared_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  DeviceFunctions functions_;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t queue_family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer now_ = VK_NULL_HANDLE;
  VkFence now_done_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkPhysicalDeviceIDProperties ids_{};
  VkPhysicalDeviceMemoryProperties memory_{};
  bool abandoned_ = false;
  std::vector<std::function<void()>> to_free_;
};

// A buffer of the device; mapped where the host can address it.
class VulkanBuffer final : public Buffer {
 public:
  enum class Place : std::uint8_t {
    device,   // where the device is fastest
    staging,  // where the host is
  };
  // Zeroed. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<VulkanBuffer>> create(std::shared_ptr<Context> context,
                                                                    std::uint64_t bytes, Place place);
  ~VulkanBuffer() override;
  VulkanBuffer(const VulkanBuffer&) = delete;
  VulkanBuffer& operator=(const VulkanBuffer&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {mapped_, mapped_ == nullptr ? 0 : bytes_}; }
  [[nodiscard]] VkBuffer handle() const { return buffer_; }

 private:
  explicit VulkanBuffer(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  [[nodiscard]] Status allocate(Place place);
  [[nodiscard]] Status clear();

  std::shared_ptr<Context> context_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::byte* mapped_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace shunt::vulkan
