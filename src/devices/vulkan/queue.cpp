#include "devices/vulkan/queue.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace shunt::vulkan {

Result<std::unique_ptr<Queue>> Queue::create(const DeviceFunctions& call, VkDevice device, const QueuePlace& place,
                                             bool timeline) {
  std::unique_ptr<Queue> queue(new Queue(call, device, place));
  SHUNT_TRY(queue->start(timeline));
  return queue;
}

Status Queue::start(bool timeline) {
  call_.GetDeviceQueue(device_, place_.family, place_.index, &queue_);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = place_.family;
  SHUNT_TRY(check(call_.CreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool"));
  if (!timeline) return {};
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  return check(call_.CreateSemaphore(device_, &semaphore, nullptr, &semaphore_), "vkCreateSemaphore");
}

Queue::~Queue() {
  for (const Fence& each : fences_) call_.DestroyFence(device_, each.fence, nullptr);
  for (VkFence fence : free_fences_) call_.DestroyFence(device_, fence, nullptr);
  call_.DestroySemaphore(device_, semaphore_, nullptr);
  call_.DestroyCommandPool(device_, pool_, nullptr);
}

Result<VkCommandBuffer> Queue::make_commands() const {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  SHUNT_TRY(check(call_.AllocateCommandBuffers(device_, &info, &commands), "vkAllocateCommandBuffers"));
  return commands;
}

Result<VkCommandBuffer> Queue::begin() {
  while (!used_.empty()) {
    SHUNT_TRY_ASSIGN(const bool over, has_reached(used_.front().number));
    if (!over) break;
    free_commands_.push_back(used_.front().commands);
    used_.pop_front();
  }
  if (free_commands_.empty()) {
    SHUNT_TRY_ASSIGN(VkCommandBuffer made, make_commands());
    free_commands_.push_back(made);
  }
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VkCommandBuffer commands = free_commands_.back();
  SHUNT_TRY(check(call_.BeginCommandBuffer(commands, &info), "vkBeginCommandBuffer"));
  free_commands_.pop_back();
  return commands;
}

Result<Point> Queue::submit(VkCommandBuffer once, VkCommandBuffer recorded, const Point& after) {
  std::array<VkCommandBuffer, 2> commands{};
  std::uint32_t count = 0;
  if (once != VK_NULL_HANDLE) commands[count++] = once;
  if (recorded != VK_NULL_HANDLE) commands[count++] = recorded;
  const std::uint64_t number = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &number;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = count;
  info.pCommandBuffers = commands.data();
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkFence fence = VK_NULL_HANDLE;
  if (semaphore_ != VK_NULL_HANDLE) {
    info.pNext = &values;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphore_;
    if (after.number != 0) {
      values.waitSemaphoreValueCount = info.waitSemaphoreCount = 1;
      values.pWaitSemaphoreValues = &after.number;
      info.pWaitSemaphores = &after.queue->semaphore_;
      info.pWaitDstStageMask = &all;
    }
  } else {
    SHUNT_TRY_ASSIGN(fence, take_fence());
  }
  const VkResult result = call_.QueueSubmit(queue_, 1, &info, fence);
  if (result != VK_SUCCESS) {
    if (fence != VK_NULL_HANDLE) free_fences_.push_back(fence);
    if (once != VK_NULL_HANDLE) discard(once);
    return error_of(result, "vkQueueSubmit");
  }
  submitted_ = number;
  if (fence != VK_NULL_HANDLE) fences_.push_back({number, fence});
  if (once != VK_NULL_HANDLE) used_.push_back({number, once});
  return Point{this, number};
}

Result<VkFence> Queue::take_fence() {
  VkFence fence = VK_NULL_HANDLE;
  if (free_fences_.empty()) {
    VkFenceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    SHUNT_TRY(check(call_.CreateFence(device_, &info, nullptr, &fence), "vkCreateFence"));
    return fence;
  }
  fence = free_fences_.back();
  SHUNT_TRY(check(call_.ResetFences(device_, 1, &fence), "vkResetFences"));
  free_fences_.pop_back();
  return fence;
}

Result<bool> Queue::has_reached(std::uint64_t number) {
  if (number <= reached_) return true;
  if (semaphore_ == VK_NULL_HANDLE) return wait_for_fence(number, 0);
  SHUNT_TRY(check(call_.GetSemaphoreCounterValue(device_, semaphore_, &reached_), "vkGetSemaphoreCounterValue"));
  return number <= reached_;
}

// Work submitted before a fence is over when the fence is signalled.
Result<bool> Queue::wait_for_fence(std::uint64_t number, std::uint64_t nanoseconds) {
  const auto place = std::ranges::find(fences_, number, &Fence::number);
  if (place == fences_.end()) return number <= reached_;
  const VkResult result = call_.WaitForFences(device_, 1, &place->fence, VK_TRUE, nanoseconds);
  if (result == VK_TIMEOUT) return false;
  SHUNT_TRY(check(result, "vkWaitForFences"));
  reached_ = number;
  while (!fences_.empty() && fences_.front().number <= number) {
    free_fences_.push_back(fences_.front().fence);
    fences_.pop_front();
  }
  return true;
}

Result<bool> Queue::wait_for_any(std::span<const Point> points, std::uint64_t nanoseconds) {
  Queue& first = *points.front().queue;
  for (const Point& each : points)
    if (each.number <= each.queue->reached_) return true;
  if (first.semaphore_ == VK_NULL_HANDLE) return first.wait_for_fence(points.front().number, nanoseconds);
  std::vector<VkSemaphore> semaphores;
  std::vector<std::uint64_t> values;
  for (const Point& each : points) {
    semaphores.push_back(each.queue->semaphore_);
    values.push_back(each.number);
  }
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.flags = VK_SEMAPHORE_WAIT_ANY_BIT;
  info.semaphoreCount = static_cast<std::uint32_t>(points.size());
  info.pSemaphores = semaphores.data();
  info.pValues = values.data();
  const VkResult result = first.call_.WaitSemaphores(first.device_, &info, nanoseconds);
  if (result == VK_TIMEOUT) return false;
  SHUNT_TRY(check(result, "vkWaitSemaphores"));
  return true;
}

Result<bool> Queue::poll_for_any(std::span<const Point> points, std::uint64_t nanoseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  do {
    for (const Point& each : points) {
      SHUNT_TRY_ASSIGN(const bool over, each.queue->has_reached(each.number));
      if (over) return true;
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace shunt::vulkan
