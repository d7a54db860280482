// The Vulkan library, opened at run time: its functions, and its errors as ours.
//
// Vulkan 1.1, and the parts of 1.2 and 1.3 that a device has, https://registry.khronos.org/vulkan/specs/1.3/html/.
// Plain tables of pointers; any thread.
#pragma once

#include <memory>
#include <string_view>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "base/system/shared_library.h"

namespace shunt::vulkan {

// Functions of an instance, then functions of a device.
#define SHUNT_VULKAN_INSTANCE_FUNCTIONS(X)  \
  X(DestroyInstance)                        \
  X(EnumeratePhysicalDevices)               \
  X(EnumerateDeviceExtensionProperties)     \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceMemoryProperties2)     \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(CreateDevice)                           \
  X(GetDeviceProcAddr)
#define SHUNT_VULKAN_DEVICE_FUNCTIONS(X) \
  X(DestroyDevice)                       \
  X(GetDeviceQueue)                      \
  X(DeviceWaitIdle)                      \
  X(QueueSubmit)                         \
  X(CreateBuffer)                        \
  X(DestroyBuffer)                       \
  X(GetBufferMemoryRequirements)         \
  X(AllocateMemory)                      \
  X(FreeMemory)                          \
  X(BindBufferMemory)                    \
  X(MapMemory)                           \
  X(GetMemoryHostPointerPropertiesEXT)   \
  X(CreateShaderModule)                  \
  X(DestroyShaderModule)                 \
  X(CreateDescriptorSetLayout)           \
  X(DestroyDescriptorSetLayout)          \
  X(CreatePipelineLayout)                \
  X(DestroyPipelineLayout)               \
  X(CreateComputePipelines)              \
  X(DestroyPipeline)                     \
  X(CreatePipelineCache)                 \
  X(DestroyPipelineCache)                \
  X(GetPipelineCacheData)                \
  X(CreateDescriptorPool)                \
  X(DestroyDescriptorPool)               \
  X(AllocateDescriptorSets)              \
  X(UpdateDescriptorSets)                \
  X(CreateCommandPool)                   \
  X(DestroyCommandPool)                  \
  X(AllocateCommandBuffers)              \
  X(BeginCommandBuffer)                  \
  X(EndCommandBuffer)                    \
  X(CmdBindPipeline)                     \
  X(CmdBindDescriptorSets)               \
  X(CmdDispatch)                         \
  X(CmdPipelineBarrier)                  \
  X(CmdCopyBuffer)                       \
  X(CmdFillBuffer)                       \
  X(CmdResetQueryPool)                   \
  X(CmdWriteTimestamp)                   \
  X(CreateQueryPool)                     \
  X(DestroyQueryPool)                    \
  X(GetQueryPoolResults)                 \
  X(GetCalibratedTimestampsEXT)          \
  X(CreateSemaphore)                     \
  X(DestroySemaphore)                    \
  X(GetSemaphoreCounterValue)            \
  X(WaitSemaphores)                      \
  X(CreateFence)                         \
  X(DestroyFence)                        \
  X(ResetFences)                         \
  X(WaitForFences)

// NOLINTBEGIN(readability-identifier-naming): the names are the API's
struct InstanceFunctions {
#define SHUNT_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  SHUNT_VULKAN_INSTANCE_FUNCTIONS(SHUNT_VULKAN_MEMBER)
};
struct DeviceFunctions {
  SHUNT_VULKAN_DEVICE_FUNCTIONS(SHUNT_VULKAN_MEMBER)
#undef SHUNT_VULKAN_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// The library and one instance of it; both end with the object.
class Instance {
 public:
  // Errors: unsupported, with the stage where it stopped and what would help.
  [[nodiscard]] static Result<std::shared_ptr<Instance>> open();
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  [[nodiscard]] const InstanceFunctions& functions() const { return functions_; }
  [[nodiscard]] VkInstance handle() const { return instance_; }
  // Returns a function of an extension; null if it is absent.
  template <class Function>
  [[nodiscard]] Function function(const char* name) const {
    return reinterpret_cast<Function>(find_(instance_, name));
  }
  // Functions are null if the device has neither them nor an extension with the same. REQUIRES: `device` was made with
  // this instance.
  [[nodiscard]] DeviceFunctions device_functions(VkDevice device) const;

 private:
  Instance() = default;
  SharedLibrary library_;
  PFN_vkGetInstanceProcAddr find_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  InstanceFunctions functions_;
};

// Makes the error "what: VK_ERROR_DEVICE_LOST" with the matching code. REQUIRES: result is an error.
[[nodiscard]] std::unexpected<Error> error_of(VkResult result, std::string_view what);
[[nodiscard]] inline Status check(VkResult result, std::string_view what) {
  if (result == VK_SUCCESS) return {};
  return error_of(result, what);
}

}  // namespace shunt::vulkan
