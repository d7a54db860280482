// Submissions that the stand-in Vulkan library holds back, with copies of everything their structures point to, and the
// thread that later starts them in order.
//
// Calls on one queue are serialized here, as Vulkan requires. Safe from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace shunt::test {

struct HeldSubmission {
  HeldSubmission(VkQueue its_queue, const VkSubmitInfo& its_info, VkFence its_fence)
      : queue(its_queue), info(its_info), fence(its_fence) {
    commands.assign(info.pCommandBuffers, info.pCommandBuffers + info.commandBufferCount);
    waits.assign(info.pWaitSemaphores, info.pWaitSemaphores + info.waitSemaphoreCount);
    stages.assign(info.pWaitDstStageMask, info.pWaitDstStageMask + info.waitSemaphoreCount);
    signals.assign(info.pSignalSemaphores, info.pSignalSemaphores + info.signalSemaphoreCount);
    if (info.pNext == nullptr) return;
    values = *static_cast<const VkTimelineSemaphoreSubmitInfo*>(info.pNext);
    wait_values.assign(values->pWaitSemaphoreValues, values->pWaitSemaphoreValues + values->waitSemaphoreValueCount);
    signal_values.assign(values->pSignalSemaphoreValues,
                         values->pSignalSemaphoreValues + values->signalSemaphoreValueCount);
  }

  VkResult begin(PFN_vkQueueSubmit submit) {
    info.pCommandBuffers = commands.data();
    info.pWaitSemaphores = waits.data();
    info.pWaitDstStageMask = stages.data();
    info.pSignalSemaphores = signals.data();
    info.pNext = nullptr;
    if (values) {
      values->pWaitSemaphoreValues = wait_values.data();
      values->pSignalSemaphoreValues = signal_values.data();
      values->pNext = nullptr;
      info.pNext = &*values;
    }
    return submit(queue, 1, &info, fence);
  }

  VkQueue queue;
  VkSubmitInfo info;
  VkFence fence;
  std::optional<VkTimelineSemaphoreSubmitInfo> values = {};
  std::vector<VkCommandBuffer> commands = {};
  std::vector<VkSemaphore> waits = {};
  std::vector<VkSemaphore> signals = {};
  std::vector<VkPipelineStageFlags> stages = {};
  std::vector<std::uint64_t> wait_values = {};
  std::vector<std::uint64_t> signal_values = {};
};

// The real driver's functions.
struct QueueFunctions {
  PFN_vkQueueSubmit submit;
  PFN_vkQueueWaitIdle wait_idle;
};

class HeldSubmissions {
 public:
  // How long a submission is delayed; empty means forever.
  using Delay = std::optional<std::chrono::milliseconds>;

  void note_queue(VkQueue queue, VkDevice device) {
    const std::scoped_lock lock(mutex_);
    lines_[queue].device = device;
  }

  // Appends to the queue's waiting submissions; submits at once if none is waiting and there is no delay.
  VkResult submit(HeldSubmission submission, Delay delay, const QueueFunctions& real) {
    const std::scoped_lock lock(mutex_);
    Line& line = lines_[submission.queue];
    if (line.waiting.empty() && delay == std::chrono::milliseconds(0)) return submission.begin(real.submit);
    line.waiting.push_back({std::move(submission), delay, real});
    if (!line.has_thread && !line.never_begins()) {
      line.has_thread = true;
      std::thread([this, &line] { begin_delayed(line); }).detach();
    }
    return VK_SUCCESS;
  }

  // Starts all held submissions now and waits for each.
  void release() {
    const std::scoped_lock lock(mutex_);
    for (auto& [queue, line] : lines_)
      while (!line.waiting.empty()) {
        const PFN_vkQueueWaitIdle wait = line.waiting.front().real.wait_idle;
        line.begin_first();
        static_cast<void>(wait(queue));
      }
    changed_.notify_all();
  }

  // Waits until nothing of the device is held, then returns what `wait` returns; device lost if that would never
  // happen.
  VkResult wait_idle(VkDevice device, PFN_vkDeviceWaitIdle wait) {
    std::unique_lock lock(mutex_);
    for (auto& [queue, line] : lines_) {
      if (line.device != device) continue;
      changed_.wait(lock, [&line] { return line.waiting.empty() || line.never_begins(); });
      if (!line.waiting.empty()) return VK_ERROR_DEVICE_LOST;
    }
    return wait(device);
  }

 private:
  struct Waiting {
    HeldSubmission submission;
    Delay delay;
    QueueFunctions real;
  };
  struct Line {
    VkDevice device = VK_NULL_HANDLE;
    std::deque<Waiting> waiting = {};
    std::uint64_t begun = 0;
    bool has_thread = false;

    [[nodiscard]] bool never_begins() const { return !waiting.empty() && !waiting.front().delay; }
    void begin_first() {
      static_cast<void>(waiting.front().submission.begin(waiting.front().real.submit));
      waiting.pop_front();
      ++begun;
    }
  };

  void begin_delayed(Line& line) {
    std::unique_lock lock(mutex_);
    while (!line.waiting.empty() && !line.never_begins()) {
      const std::uint64_t which = line.begun;
      const auto due = std::chrono::steady_clock::now() + *line.waiting.front().delay;
      // release() ends this wait early.
      changed_.wait_until(lock, due, [&line, which] { return line.begun != which; });
      if (line.begun == which) line.begin_first();
    }
    line.has_thread = false;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<VkQueue, Line> lines_;  // a map, so that lines keep their addresses
};

}  // namespace shunt::test
