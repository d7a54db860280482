// A Vulkan library that passes everything on to the real one, but for the fault that a test has set.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "devices/faulty_vulkan.h"

namespace {

using shunt::test::VulkanFault;

std::atomic<VulkanFault> fault{VulkanFault::none};
VkInstance real_instance = VK_NULL_HANDLE;
PFN_vkGetDeviceProcAddr real_device_function = nullptr;
PFN_vkQueueSubmit real_submit = nullptr;
PFN_vkWaitForFences real_wait = nullptr;
PFN_vkAllocateMemory real_allocate = nullptr;

PFN_vkGetInstanceProcAddr real_instance_function() {
  static const auto kFunction = [] {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr
                              : reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }();
  return kFunction;
}

VkResult submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  if (fault == VulkanFault::submit_loses_device) return VK_ERROR_DEVICE_LOST;
  return real_submit(queue, count, infos, fence);
}
VkResult wait(VkDevice device, std::uint32_t count, const VkFence* fences, VkBool32 all, std::uint64_t timeout) {
  if (fault == VulkanFault::never_completes) return VK_TIMEOUT;
  const VkResult result = real_wait(device, count, fences, all, timeout);
  return result == VK_SUCCESS && fault == VulkanFault::wait_loses_device ? VK_ERROR_DEVICE_LOST : result;
}
VkResult allocate(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                  VkDeviceMemory* memory) {
  if (fault == VulkanFault::allocation_fails) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return real_allocate(device, info, callbacks, memory);
}

// The functions of the instance pass on to those of the device that they are called with: there may be several.
template <class Function>
PFN_vkVoidFunction replace(const char* name, Function& real, Function mine) {
  real = reinterpret_cast<Function>(real_instance_function()(real_instance, name));
  return reinterpret_cast<PFN_vkVoidFunction>(mine);
}

PFN_vkVoidFunction device_function(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkQueueSubmit") == 0) return replace(name, real_submit, submit);
  if (std::strcmp(name, "vkWaitForFences") == 0) return replace(name, real_wait, wait);
  if (std::strcmp(name, "vkAllocateMemory") == 0) return replace(name, real_allocate, allocate);
  return real_device_function(device, name);
}

}  // namespace

extern "C" {

void set_vulkan_fault(VulkanFault chosen) { fault = chosen; }

// NOLINTNEXTLINE(readability-identifier-naming): the name is the API's
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  const PFN_vkGetInstanceProcAddr real = real_instance_function();
  if (real == nullptr) return nullptr;
  if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return real(instance, name);
  real_instance = instance;
  real_device_function = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real(instance, name));
  return reinterpret_cast<PFN_vkVoidFunction>(device_function);
}
}
