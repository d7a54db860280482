// One logical Vulkan device: its queues, its memory, and objects to free only when their work is over.
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

// The progress of both queues.
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
  // Fills in what the context knows besides limits: driver, PCI address, features.
  void describe(DeviceInfo& info);
  [[nodiscard]] Memory& memory() { return *memory_; }
  // The clock of programs' timestamps.
  [[nodiscard]] Clock& clock() { return *clock_; }
  // The queue on which programs run.
  [[nodiscard]] Queue& compute() { return *compute_; }
  // The queue on which large copies run: another one if the device has one for copies.
  [[nodiscard]] Queue& transfer() { return transfer_ == nullptr ? *compute_ : *transfer_; }
  [[nodiscard]] bool has_transfer_queue() const { return transfer_ != nullptr; }
  // The queue families of both.
  [[nodiscard]] std::array<std::uint32_t, 2> families() {
    return {compute().place().family, transfer().place().family};
  }
  // Returns whether all memory is the host's: buffers are mapped, and nothing is staged.
  [[nodiscard]] bool shares_host_memory() const {
    return properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ||
           properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }
  // Returns whether it uses host memory in place. The whole pages around a given range exist too, so the driver's pages
  // must be no larger than the machine's. Drivers on the CPU are excluded: a file truncated while mapped would kill the
  // process in one of their threads.
  [[nodiscard]] bool imports_host_memory() const {
    return properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU && features_.import_alignment_bytes != 0 &&
           features_.import_alignment_bytes <= page_bytes_;
  }

  // Returns the point that all work submitted so far reaches.
  [[nodiscard]] Moment submitted();
  [[nodiscard]] Result<bool> has_reached(const Moment& moment);
  // Frees handles once all submitted work is over: now, later, or at the end. Work that never ends keeps them.
  void release(std::function<void()> free);
  // Frees what is due to be freed.
  void collect();

 private:
  struct Release {
    Moment after;
    std::function<void()> free;
  };

  Context() = default;
  // Deletes it, unless its work does not end within seconds: then the end of the process tries once more.
  static void close(Context* context);
  static void close_abandoned();
  // Returns whether all submitted work ends in time; also true if the device is lost.
  [[nodiscard]] bool ends_by(std::chrono::steady_clock::time_point end);
  [[nodiscard]] Status start();
  // The queue for computing, then the one for copying if there is a separate one.
  [[nodiscard]] Result<std::vector<QueuePlace>> choose_queues() const;
  [[nodiscard]] Status make_device(const FeatureChain& chain, std::span<const QueuePlace> queues);

  std::shared_ptr<Instance> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  std::unique_ptr<DeviceFunctions> functions_ = std::make_unique<DeviceFunctions>();  // the other members refer to it
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

// Orders a queue's work: what was written before is visible after.
void full_barrier(const DeviceFunctions& call, VkCommandBuffer commands);
// Makes what was written visible to the host once a submission is over.
void host_barrier(const DeviceFunctions& call, VkCommandBuffer commands);

}  // namespace shunt::vulkan
