#include "devices/vulkan/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace shunt::vulkan {
namespace {

constexpr std::uint64_t kForever = ~std::uint64_t{0};

Status check(VkResult result, std::string_view what) {
  if (result == VK_SUCCESS) return {};
  return error_of(result, what);
}

}  // namespace

Result<std::shared_ptr<Context>> Context::create(std::shared_ptr<Instance> instance, VkPhysicalDevice physical) {
  std::shared_ptr<Context> context(new Context);
  context->instance_ = std::move(instance);
  context->physical_ = physical;
  SHUNT_TRY(context->start());
  return context;
}

Status Context::start() {
  const InstanceFunctions& api = instance_->functions();
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  ids_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  properties.pNext = &ids_;
  api.GetPhysicalDeviceProperties2(physical_, &properties);
  properties_ = properties.properties;
  if (properties_.apiVersion < VK_API_VERSION_1_1)
    return fail(Code::unsupported, fmt::format("{} has Vulkan 1.0, and 1.1 is needed", properties_.deviceName));
  api.GetPhysicalDeviceMemoryProperties(physical_, &memory_);

  std::uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  const auto family = std::ranges::find_if(
      families, [](const VkQueueFamilyProperties& each) { return (each.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0; });
  if (family == families.end())
    return fail(Code::unsupported, fmt::format("{} has no queue that computes", properties_.deviceName));
  queue_family_ = static_cast<std::uint32_t>(family - families.begin());

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  SHUNT_TRY(check(api.CreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice"));
  functions_ = instance_->device_functions(device_);
  functions_.GetDeviceQueue(device_, queue_family_, 0, &queue_);

  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = queue_family_;
  SHUNT_TRY(check(functions_.CreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool"));
  SHUNT_TRY_ASSIGN(now_, make_commands());
  SHUNT_TRY_ASSIGN(now_done_, make_fence());
  return {};
}

Context::~Context() {
  if (device_ == VK_NULL_HANDLE) return;
  static_cast<void>(functions_.DeviceWaitIdle(device_));
  for (const auto& free : to_free_) free();
  functions_.DestroyFence(device_, now_done_, nullptr);
  functions_.DestroyCommandPool(device_, pool_, nullptr);
  functions_.DestroyDevice(device_, nullptr);
}

std::uint64_t Context::memory_bytes() const {
  std::uint64_t most = 0;
  for (std::uint32_t heap = 0; heap < memory_.memoryHeapCount; ++heap)
    if ((memory_.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      most = std::max<std::uint64_t>(most, memory_.memoryHeaps[heap].size);
  return most;
}

std::optional<std::uint32_t> Context::memory_type(std::uint32_t allowed, VkMemoryPropertyFlags wanted,
                                                  VkMemoryPropertyFlags liked) const {
  std::optional<std::uint32_t> found;
  for (std::uint32_t type = 0; type < memory_.memoryTypeCount; ++type) {
    const VkMemoryPropertyFlags flags = memory_.memoryTypes[type].propertyFlags;
    if ((allowed >> type & 1U) == 0 || (flags & wanted) != wanted) continue;
    if ((flags & liked) == liked) return type;
    if (!found) found = type;
  }
  return found;
}

Result<VkFence> Context::make_fence() const {
  VkFenceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  SHUNT_TRY(check(functions_.CreateFence(device_, &info, nullptr, &fence), "vkCreateFence"));
  return fence;
}

Result<VkCommandBuffer> Context::make_commands() const {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  SHUNT_TRY(check(functions_.AllocateCommandBuffers(device_, &info, &commands), "vkAllocateCommandBuffers"));
  return commands;
}

void Context::release(std::function<void()> free) {
  if (abandoned_)
    to_free_.push_back(std::move(free));
  else
    free();
}

Status Context::submit(VkCommandBuffer commands, VkFence fence) const {
  SHUNT_TRY(check(functions_.ResetFences(device_, 1, &fence), "vkResetFences"));
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  return check(functions_.QueueSubmit(queue_, 1, &info, fence), "vkQueueSubmit");
}

Status Context::run_now(const std::function<void(VkCommandBuffer)>& record) {
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  SHUNT_TRY(check(functions_.BeginCommandBuffer(now_, &begin), "vkBeginCommandBuffer"));
  record(now_);
  SHUNT_TRY(check(functions_.EndCommandBuffer(now_), "vkEndCommandBuffer"));
  SHUNT_TRY(submit(now_, now_done_));
  return check(functions_.WaitForFences(device_, 1, &now_done_, VK_TRUE, kForever), "vkWaitForFences");
}

Result<std::unique_ptr<VulkanBuffer>> VulkanBuffer::create(std::shared_ptr<Context> context, std::uint64_t bytes,
                                                           Place place) {
  std::unique_ptr<VulkanBuffer> buffer(new VulkanBuffer(std::move(context)));
  buffer->bytes_ = bytes;
  SHUNT_TRY(buffer->allocate(place));
  SHUNT_TRY(buffer->clear());
  return buffer;
}

Status VulkanBuffer::allocate(Place place) {
  const DeviceFunctions& call = context_->call();
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = std::max<std::uint64_t>(4, (bytes_ + 3) / 4 * 4);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  SHUNT_TRY(check(call.CreateBuffer(context_->handle(), &info, nullptr, &buffer_), "vkCreateBuffer"));
  VkMemoryRequirements needs{};
  call.GetBufferMemoryRequirements(context_->handle(), buffer_, &needs);
  const bool mapped = place == Place::staging || context_->shares_host_memory();
  const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  const auto type = context_->memory_type(needs.memoryTypeBits, mapped ? host : local, mapped ? cached : local);
  if (!type) return fail(Code::out_of_memory, "no memory type fits");
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = *type;
  SHUNT_TRY(check(call.AllocateMemory(context_->handle(), &allocation, nullptr, &memory_), "vkAllocateMemory"));
  SHUNT_TRY(check(call.BindBufferMemory(context_->handle(), buffer_, memory_, 0), "vkBindBufferMemory"));
  if (!mapped) return {};
  void* address = nullptr;
  SHUNT_TRY(check(call.MapMemory(context_->handle(), memory_, 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory"));
  mapped_ = static_cast<std::byte*>(address);
  return {};
}

Status VulkanBuffer::clear() {
  if (mapped_ != nullptr) {
    std::memset(mapped_, 0, bytes_);
    return {};
  }
  return context_->run_now(
      [this](VkCommandBuffer commands) { context_->call().CmdFillBuffer(commands, buffer_, 0, VK_WHOLE_SIZE, 0); });
}

VulkanBuffer::~VulkanBuffer() {
  context_->release([&call = context_->call(), device = context_->handle(), buffer = buffer_, memory = memory_] {
    call.DestroyBuffer(device, buffer, nullptr);
    call.FreeMemory(device, memory, nullptr);
  });
}

}  // namespace shunt::vulkan
