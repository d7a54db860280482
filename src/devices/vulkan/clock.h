// A device's clock and the host's: converts the device's timestamps to trace::now_ns().
//
// Uses VK_EXT_calibrated_timestamps, which reads both clocks at once. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "devices/vulkan/api.h"

namespace shunt::vulkan {

class Clock {
 public:
  struct Kind {
    double period_ns = 1;
    std::uint32_t bits = 0;  // of a timestamp; 0: no timestamps
    bool is_readable = false;
  };
  // The functions must outlive this.
  Clock(const Instance& instance, VkPhysicalDevice physical, const DeviceFunctions& call, VkDevice device,
        const Kind& kind);

  // Returns whether both clocks can be read.
  [[nodiscard]] bool is_known() const { return is_known_; }
  // Returns the time from one timestamp to a later one.
  [[nodiscard]] std::uint64_t between_ns(std::uint64_t first, std::uint64_t last) const;
  // Returns nullopt if is_known() is false, or if reading the clocks failed.
  [[nodiscard]] std::optional<std::uint64_t> host_ns(std::uint64_t timestamp);

 private:
  [[nodiscard]] bool read();

  const DeviceFunctions& call_;
  VkDevice device_;
  double period_ns_;
  std::uint64_t mask_;
  bool is_known_ = false;
  // Both clocks at the last reading.
  std::uint64_t device_time_ = 0;
  std::uint64_t host_ns_ = 0;
};

}  // namespace shunt::vulkan
