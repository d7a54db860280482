// A queue of a device: work runs in order of submission, and others wait for a submission by its number.
//
// The numbers are values of a timeline semaphore. A device without those uses fences, and then only one queue. Owned by
// the Context; one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "devices/vulkan/api.h"

namespace shunt::vulkan {

// Identifies one of a device's queues.
struct QueuePlace {
  std::uint32_t family = 0;
  std::uint32_t index = 0;
  std::uint32_t timestamp_bits = 0;  // 0: no timestamps
};

class Queue;

// The state of a queue when it has reached a submission.
struct Point {
  Queue* queue = nullptr;
  std::uint64_t number = 0;  // 0: nothing
};

class Queue {
 public:
  // The functions must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Queue>> create(const DeviceFunctions& call, VkDevice device,
                                                             const QueuePlace& place, bool timeline);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  [[nodiscard]] const QueuePlace& place() const { return place_; }
  // Makes a command buffer that is recorded once and submitted repeatedly.
  [[nodiscard]] Result<VkCommandBuffer> make_commands() const;
  // Begins a command buffer for one submission, which takes it back.
  [[nodiscard]] Result<VkCommandBuffer> begin();
  // Takes back a buffer of begin() whose recording failed.
  void discard(VkCommandBuffer once) { free_commands_.push_back(once); }
  // Starts `once` of begin(), then `recorded` (either may be null), when the other queue's point is reached.
  [[nodiscard]] Result<Point> submit(VkCommandBuffer once, VkCommandBuffer recorded, const Point& after);

  // The number of the last submission.
  [[nodiscard]] std::uint64_t submitted() const { return submitted_; }
  [[nodiscard]] Result<bool> has_reached(std::uint64_t number);
  // Waits until one of the points is reached or the time is over; returns whether one is reached. REQUIRES: the points
  // are of different queues.
  [[nodiscard]] static Result<bool> wait_for_any(std::span<const Point> points, std::uint64_t nanoseconds);
  // Does the same by polling.
  [[nodiscard]] static Result<bool> poll_for_any(std::span<const Point> points, std::uint64_t nanoseconds);

 private:
  struct Used {
    std::uint64_t number;
    VkCommandBuffer commands;
  };
  struct Fence {
    std::uint64_t number;
    VkFence fence;
  };

  Queue(const DeviceFunctions& call, VkDevice device, const QueuePlace& place)
      : call_(call), device_(device), place_(place) {}
  [[nodiscard]] Status start(bool timeline);
  [[nodiscard]] Result<VkFence> take_fence();
  [[nodiscard]] Result<bool> wait_for_fence(std::uint64_t number, std::uint64_t nanoseconds);

  const DeviceFunctions& call_;
  VkDevice device_;
  QueuePlace place_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;  // null: fences
  std::uint64_t submitted_ = 0;
  std::uint64_t reached_ = 0;  // as far as known
  std::deque<Fence> fences_;   // of submissions not known to be over
  std::vector<VkFence> free_fences_;
  std::deque<Used> used_;
  std::vector<VkCommandBuffer> free_commands_;
};

}  // namespace shunt::vulkan
