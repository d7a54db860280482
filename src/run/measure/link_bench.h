// Measures how fast bytes move between device and host memory: each direction alone, both at once, and weights, which
// the device reads by itself; and directly from another device.
//
// Owns its memory on the device, which must outlive it. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "devices/device.h"
#include "plan/costs/profile.h"

namespace shunt {

class LinkBench {
 public:
  enum class Direction : std::uint8_t { to_device, from_device, both, weights, from_peer };

  // For copies of up to `most_bytes`, a multiple of 4. Weights are read from `weight_bytes` in turn, or from as much as
  // the longest copy has. `peer`, which may be null, is another device to copy from. Errors: those of allocate().
  [[nodiscard]] static Result<std::unique_ptr<LinkBench>> create(Device& device, std::uint64_t most_bytes,
                                                                 std::uint64_t weight_bytes = 0,
                                                                 Device* peer = nullptr);
  // Returns whether the device copies weights from pinned memory.
  [[nodiscard]] bool copies_weights() const { return pinned_ != nullptr; }
  // Returns whether the device copies from the other one by itself.
  [[nodiscard]] bool copies_from_peer() const { return of_peer_ != nullptr; }
  // Microseconds that a copy takes by the device's clock; for both directions, until the later one has ended. REQUIRES:
  // bytes <= most_bytes, a multiple of 4; weights and from_peer only if it copies so.
  [[nodiscard]] Result<double> measure_us(Direction direction, std::uint64_t bytes);
  // Bytes per second: of memory that all of the processor's threads read, and of weights that travel.
  struct SideBySide {
    double reads_alone = 0;
    double reads = 0;  // while weights travel
    double weights_alone = 0;
    double weights = 0;  // while the processor reads
  };
  // REQUIRES: it copies weights.
  [[nodiscard]] Result<SideBySide> measure_side_by_side();

 private:
  LinkBench(Device& device, Device* peer) : device_(device), peer_(peer) {}
  // Has the device read so much memory for weights, if it can.
  void pin(std::uint64_t bytes);
  // Copies weights that were not read lately.
  [[nodiscard]] Status copy_weights(std::uint64_t bytes);

  Device& device_;
  Device* peer_;
  std::unique_ptr<Buffer> down_;
  std::unique_ptr<Buffer> up_;
  std::unique_ptr<Buffer> of_peer_;  // null if the device does not copy from there
  std::vector<std::byte> host_down_;
  std::vector<std::byte> host_up_;
  std::vector<std::byte> host_weights_;
  std::unique_ptr<Buffer> weights_;     // the same
  std::uint64_t next_weight_ = 0;       // the offset of those that are copied next
  std::shared_ptr<const void> pinned_;  // the same; null if the device does not pin it
};

struct CopyTime {
  std::uint64_t bytes = 0;
  double us = 0;
};
// Fits latency and bandwidth to these times, by the least sum of squared relative errors. REQUIRES: at least two sizes,
// in ascending order.
[[nodiscard]] LinkRates fit_link(const std::vector<CopyTime>& times);

}  // namespace shunt
