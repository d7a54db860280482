// One logical device of Vulkan: its queues, its memory, and what may be freed only when its work is over.
//
// Buffers and programs share it, so that handles live as long as what was made with them. One thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "devices/device.h"
#include "devices/vulkan/clock.h"
#include "devices/vulkan/features.h"
#include "devices/vulkan/memory.h"
#include "devices/vulkan/queue.h"

namespace shunt::vulkan {

// How far both queues are.
struct Moment {
  std::uint64_t compute = 0;
  std::uint64_t transfer = 0;
};

class Context {
 public:
  // Errors: unsupported for a device without 1.1, compute queues or a limit that kernels need; those of vkCreateDevice.
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(std::shared_ptr<Instance> instance,
                                                               VkPhysicalDevice physical);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const DeviceFunctions& call() const { return *functions_; }
  [[nodiscard]] VkDevice handle() const { return device_; }
  [[nodiscard]] const VkPhysicalDeviceProperties& properties() const { return properties_; }
  [[nodiscard]] const VkPhysicalDeviceIDProperties& ids() const { return ids_; }
  [[nodiscard]] const Features& features() const { return features_; }
  // What it knows beside limits: driver, PCI address, features.
  void describe(DeviceInfo& info);
  [[nodiscard]] Memory& memory() { return *memory_; }
  // By which timestamps of programs are.
  [[nodiscard]] Clock& clock() { return *clock_; }
  // Where programs run.
  [[nodiscard]] Queue& compute() { return *compute_; }
  // Where large copies run: another queue if the device has one for it.
  [[nodiscard]] Queue& transfer() { return transfer_ == nullptr ? *compute_ : *transfer_; }
  [[nodiscard]] bool has_transfer_queue() const { return transfer_ != nullptr; }
  // Of both queues.
  [[nodiscard]] std::array<std::uint32_t, 2> families() {
    return {compute().place().family, transfer().place().family};
  }
  // All memory is the host's own: buffers are mapped, and nothing is staged.
  [[nodiscard]] bool shares_host_memory() const {
    return properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ||
           properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }
  // It uses the host's memory in place. Whole pages around what is given are there too, so the driver's pages must be
  // no larger than the machine's. Drivers on the CPU do not: a page of a file that was cut short would end the process
  // in a thread of theirs.
  [[nodiscard]] bool imports_host_memory() const {
    return properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU && features_.import_alignment_bytes != 0 &&
           features_.import_alignment_bytes <= page_bytes_;
  }

  // All that was submitted so far.
  [[nodiscard]] Moment submitted();
  [[nodiscard]] Result<bool> has_reached(const Moment& moment);
  // Frees handles once all that was submitted is over: now, later, or at the end. What never ends keeps them.
  void release(std::function<void()> free);
  // Frees what was waiting to be freed and may be.
  void collect();

 private:
  struct Release {
    Moment after;
    std::function<void()> free;
  };

  Context() = default;
  // Whether all that was submitted ends before the time is over; also where the device is lost.
  [[nodiscard]] bool ends_within(std::chrono::nanoseconds patience);
  [[nodiscard]] Status start();
  // Of computing, then of copying if another one is for that.
  [[nodiscard]] Result<std::vector<QueuePlace>> choose_queues() const;
  [[nodiscard]] Status make_device(const FeatureChain& chain, std::span<const QueuePlace> queues);

  std::shared_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  std::unique_ptr<DeviceFunctions> functions_ = std::make_unique<DeviceFunctions>();  // what the others refer to
  VkPhysicalDeviceProperties properties_{};
  VkPhysicalDeviceIDProperties ids_{};
  Features features_;
  std::uint64_t page_bytes_ = 0;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Queue> compute_;
  std::unique_ptr<Queue> transfer_;
  std::deque<Release> to_free_;
};

// Work of a queue before and after it: what was written is seen from here on.
void full_barrier(const DeviceFunctions& call, VkCommandBuffer commands);
// What was written is seen by the host once a submission is over.
void host_barrier(const DeviceFunctions& call, VkCommandBuffer commands);

}  // namespace shunt::vulkan
