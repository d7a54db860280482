// A Vulkan library that forwards everything to the real one, except for the fault that a test has set and for what its
// devices pretend to be.
#include "devices/faulty_vulkan.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "devices/held_submissions.h"
#include "devices/vulkan_faults.h"

namespace {

using shunt::test::HeldSubmission;
using shunt::test::HeldSubmissions;
using shunt::test::VulkanFault;
using shunt::test::VulkanFaultRule;

std::atomic<VulkanFault> fault{VulkanFault::none};
std::atomic<int> calls_left{0};  // calls left before the fault strikes
std::atomic<int> blocks{0};
std::atomic<int> submissions{0};
VkInstance real_instance = VK_NULL_HANDLE;

// Instance-level functions dispatch on the device they are called with, so several devices work.
#define REAL(name) real<PFN_vk##name>("vk" #name)

PFN_vkGetInstanceProcAddr real_instance_function() {
  static const auto kFunction = [] {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr
                              : reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }();
  return kFunction;
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(real_instance_function()(real_instance, name));
}

bool pretends(const std::string& wanted) {
  const char* words = std::getenv("SHUNT_VULKAN_PRETENDS");
  std::istringstream in(words == nullptr ? "" : words);
  for (std::string word; in >> word;)
    if (word == wanted) return true;
  return false;
}

bool strikes(VulkanFault one) { return fault == one && calls_left-- <= 0; }

// Never destroyed: a submission may start after everything else has ended.
HeldSubmissions& held() {
  static auto& submissions_held = *new HeldSubmissions;
  return submissions_held;
}

// The rules of SHUNT_VULKAN_FAULT or set_vulkan_faults().
struct Rules {
  std::mutex mutex;
  std::vector<VulkanFaultRule> rules;
  std::uint64_t submissions = 0;  // counted, like allocations, since the rules were set
  std::uint64_t allocations = 0;
};
Rules& rules() {
  static auto& all = *new Rules;
  return all;
}

bool set_rules(const char* text) {
  std::string wrong;
  auto parsed = shunt::test::vulkan_faults_of(text, wrong);
  if (!parsed) {
    static_cast<void>(std::fprintf(stderr, "SHUNT_VULKAN_FAULT: \"%s\" is no fault\n", wrong.c_str()));
    return false;
  }
  // Keeps this library loaded for threads that start submissions later.
  Dl_info self{};
  if (!parsed->empty() && dladdr(reinterpret_cast<void*>(&set_vulkan_faults), &self) != 0)
    static_cast<void>(dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
  const std::scoped_lock lock(rules().mutex);
  rules().rules = std::move(*parsed);
  rules().submissions = rules().allocations = 0;
  return true;
}

// Aborts if the fault does not parse, so that a test with a wrong fault cannot pass.
void read_environment() {
  static const bool kIsRight = [] {
    const char* const text = std::getenv("SHUNT_VULKAN_FAULT");
    return text == nullptr || set_rules(text);
  }();
  if (!kIsRight) std::abort();
}

// Returns the first rule for the next submission or allocation.
std::optional<VulkanFaultRule> next_rule(bool is_submission) {
  const std::scoped_lock lock(rules().mutex);
  const std::uint64_t number = is_submission ? rules().submissions++ : rules().allocations++;
  for (const VulkanFaultRule& rule : rules().rules)
    if ((rule.kind != VulkanFaultRule::Kind::fail) == is_submission && rule.concerns(number)) return rule;
  return std::nullopt;
}

VkResult submit_one(VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
  HeldSubmission submission(queue, info, fence);
  HeldSubmissions::Delay delay = std::chrono::milliseconds(0);
  if (fault == VulkanFault::holds_submissions) delay.reset();
  if (const auto rule = next_rule(true)) switch (rule->kind) {
      case VulkanFaultRule::Kind::delay:
        delay = rule->delay;
        break;
      case VulkanFaultRule::Kind::drop:
        submission.info.commandBufferCount = 0;
        break;
      case VulkanFaultRule::Kind::hang:
        delay.reset();
        break;
      case VulkanFaultRule::Kind::lose:
        return VK_ERROR_DEVICE_LOST;
      case VulkanFaultRule::Kind::fail:
        break;
    }
  return held().submit(std::move(submission), delay, {REAL(QueueSubmit), REAL(QueueWaitIdle)});
}

VkResult submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  if (strikes(VulkanFault::submit_loses_device)) return VK_ERROR_DEVICE_LOST;
  ++submissions;
  for (std::uint32_t i = 0; i < count; ++i)
    if (const VkResult result = submit_one(queue, infos[i], i + 1 == count ? fence : VK_NULL_HANDLE);
        result != VK_SUCCESS)
      return result;
  return VK_SUCCESS;
}

VkResult wait_idle(VkDevice device) { return held().wait_idle(device, REAL(DeviceWaitIdle)); }

VkResult after_wait(VkResult result) {
  return result == VK_SUCCESS && strikes(VulkanFault::wait_loses_device) ? VK_ERROR_DEVICE_LOST : result;
}

VkResult wait(VkDevice device, std::uint32_t count, const VkFence* fences, VkBool32 all, std::uint64_t timeout) {
  if (fault == VulkanFault::never_completes) return VK_TIMEOUT;
  return after_wait(REAL(WaitForFences)(device, count, fences, all, timeout));
}

VkResult wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo* info, std::uint64_t timeout) {
  if (fault == VulkanFault::never_completes) return VK_TIMEOUT;
  return after_wait(REAL(WaitSemaphores)(device, info, timeout));
}

VkResult count_semaphore(VkDevice device, VkSemaphore semaphore, std::uint64_t* value) {
  const std::uint64_t before = *value;
  const VkResult result = after_wait(REAL(GetSemaphoreCounterValue)(device, semaphore, value));
  if (fault == VulkanFault::never_completes) *value = before;
  return result;
}

VkResult allocate(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                  VkDeviceMemory* memory) {
  if (strikes(VulkanFault::allocation_fails) || next_rule(false)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkResult result = REAL(AllocateMemory)(device, info, callbacks, memory);
  if (result == VK_SUCCESS) ++blocks;
  return result;
}

void free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  if (memory != VK_NULL_HANDLE) --blocks;
  REAL(FreeMemory)(device, memory, callbacks);
}

void properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* answer) {
  REAL(GetPhysicalDeviceProperties2)(device, answer);
  if (pretends("integrated")) answer->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (pretends("discrete")) answer->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (pretends("limits")) answer->properties.limits.maxPerStageDescriptorStorageBuffers = 4;
}

void features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* answer) {
  REAL(GetPhysicalDeviceFeatures2)(device, answer);
  if (!pretends("fences")) return;
  for (auto* each = static_cast<VkBaseOutStructure*>(answer->pNext); each != nullptr; each = each->pNext)
    if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES)
      reinterpret_cast<VkPhysicalDeviceTimelineSemaphoreFeatures*>(each)->timelineSemaphore = VK_FALSE;
}

VkResult extensions(VkPhysicalDevice device, const char* layer, std::uint32_t* count, VkExtensionProperties* answer) {
  const VkResult result = REAL(EnumerateDeviceExtensionProperties)(device, layer, count, answer);
  if (result != VK_SUCCESS || !pretends("budget")) return result;
  if (answer != nullptr) {
    answer[*count - 1] = {};
    std::strcpy(answer[*count - 1].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  }
  return result;
}

void memory(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* answer) {
  REAL(GetPhysicalDeviceMemoryProperties2)(device, answer);
  if (!pretends("budget")) return;
  for (auto* each = static_cast<VkBaseOutStructure*>(answer->pNext); each != nullptr; each = each->pNext)
    if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      auto& budget = *reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(each);
      std::ranges::fill(budget.heapBudget, std::uint64_t{1} << 30U);
      std::ranges::fill(budget.heapUsage, std::uint64_t{1} << 29U);
    }
}

// The pretended copy-only family comes last and uses the first family's queue.
std::uint32_t real_families(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  REAL(GetPhysicalDeviceQueueFamilyProperties)(device, &count, nullptr);
  return count;
}

void families(VkPhysicalDevice device, std::uint32_t* count, VkQueueFamilyProperties* answer) {
  std::uint32_t found = real_families(device);
  if (answer != nullptr) {
    REAL(GetPhysicalDeviceQueueFamilyProperties)(device, &found, answer);
    answer[0].queueCount = 1;
    if (pretends("queues")) answer[found] = {.queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 1};
  }
  *count = found + (pretends("queues") ? 1 : 0);
}

VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                       const VkAllocationCallbacks* callbacks, VkDevice* device) {
  const std::uint32_t count = real_families(physical);
  std::vector<VkDeviceQueueCreateInfo> queues(info->pQueueCreateInfos,
                                              info->pQueueCreateInfos + info->queueCreateInfoCount);
  std::erase_if(queues, [count](const auto& each) { return each.queueFamilyIndex >= count; });
  std::vector<const char*> names(info->ppEnabledExtensionNames,
                                 info->ppEnabledExtensionNames + info->enabledExtensionCount);
  std::erase_if(names, [](const char* name) { return std::strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0; });
  VkDeviceCreateInfo changed = *info;
  changed.enabledExtensionCount = static_cast<std::uint32_t>(names.size());
  changed.ppEnabledExtensionNames = names.data();
  changed.queueCreateInfoCount = static_cast<std::uint32_t>(queues.size());
  changed.pQueueCreateInfos = queues.data();
  return REAL(CreateDevice)(physical, &changed, callbacks, device);
}

void queue_of(VkDevice device, std::uint32_t, std::uint32_t index, VkQueue* queue) {
  REAL(GetDeviceQueue)(device, 0, index, queue);
  held().note_queue(*queue, device);
}

VkResult create_pool(VkDevice device, const VkCommandPoolCreateInfo* info, const VkAllocationCallbacks* callbacks,
                     VkCommandPool* pool) {
  VkCommandPoolCreateInfo changed = *info;
  changed.queueFamilyIndex = 0;
  return REAL(CreateCommandPool)(device, &changed, callbacks, pool);
}

VkResult create_buffer(VkDevice device, const VkBufferCreateInfo* info, const VkAllocationCallbacks* callbacks,
                       VkBuffer* buffer) {
  VkBufferCreateInfo changed = *info;
  changed.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  changed.queueFamilyIndexCount = 0;
  return REAL(CreateBuffer)(device, &changed, callbacks, buffer);
}

template <class Function>
PFN_vkVoidFunction as_any(Function function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

PFN_vkVoidFunction device_function(VkDevice device, const char* name) {
  const std::pair<const char*, PFN_vkVoidFunction> mine[] = {
      {"vkQueueSubmit", as_any(submit)},
      {"vkDeviceWaitIdle", as_any(wait_idle)},
      {"vkWaitForFences", as_any(wait)},
      {"vkWaitSemaphores", as_any(wait_semaphores)},
      {"vkGetSemaphoreCounterValue", as_any(count_semaphore)},
      {"vkAllocateMemory", as_any(allocate)},
      {"vkFreeMemory", as_any(free_memory)},
      {"vkGetDeviceQueue", as_any(queue_of)},
      {"vkCreateCommandPool", as_any(create_pool)},
      {"vkCreateBuffer", as_any(create_buffer)},
  };
  const PFN_vkVoidFunction found = REAL(GetDeviceProcAddr)(device, name);
  if (found == nullptr) return nullptr;
  for (const auto& [mine_name, function] : mine)
    if (std::strcmp(mine_name, name) == 0) return function;
  return found;
}

}  // namespace

extern "C" {

void set_vulkan_fault(VulkanFault chosen, int after) {
  calls_left = after;
  fault = chosen;
}
bool set_vulkan_faults(const char* text) { return set_rules(text); }
void release_vulkan_submissions() {
  fault = VulkanFault::none;
  set_rules("");
  held().release();
}
int vulkan_blocks() { return blocks; }
int vulkan_submissions() { return submissions; }

// NOLINTNEXTLINE(readability-identifier-naming): the name is the API's
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  read_environment();
  const PFN_vkGetInstanceProcAddr real_function = real_instance_function();
  if (real_function == nullptr) return nullptr;
  const std::pair<const char*, PFN_vkVoidFunction> mine[] = {
      {"vkGetDeviceProcAddr", as_any(device_function)},
      {"vkGetPhysicalDeviceProperties2", as_any(properties)},
      {"vkGetPhysicalDeviceFeatures2", as_any(features)},
      {"vkGetPhysicalDeviceQueueFamilyProperties", as_any(families)},
      {"vkCreateDevice", as_any(create_device)},
      {"vkEnumerateDeviceExtensionProperties", as_any(extensions)},
      {"vkGetPhysicalDeviceMemoryProperties2", as_any(memory)},
  };
  for (const auto& [mine_name, function] : mine)
    if (std::strcmp(mine_name, name) == 0) {
      real_instance = instance;
      return function;
    }
  return real_function(instance, name);
}
}
