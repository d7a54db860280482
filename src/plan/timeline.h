// When steps of a plan begin and end: processors and links that are busy with one thing at a time. The planner's search
// and the plan itself count with the same one. Plain values; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "plan/costs/cost.h"

namespace shunt {

// What the timeline knows of a device. Devices are indices, pools and resources numbers of their own.
struct Lane {
  std::uint32_t pool = 0;
  std::uint32_t memory =
      0;  // of which budgets are parts; that of several pools where one GPU is used through several APIs
  std::uint32_t resource = 0;
  double launch_us = 0;  // of a step
  double wake_us = 0;    // of one that comes after a pause
  LinkRates to_host;     // nothing where its memory is the host's
  LinkRates from_host;
  bool links_to_peers = false;
  bool one_way_at_a_time = false;  // its copies to the host and from it wait for each other
  // Weights that are copied to it for a step come together up to so many bytes, so that computing begins before all are
  // there, and others come meanwhile.
  std::uint64_t streamed_bytes = std::uint64_t{64} << 20U;
};

// One per device, in their order. Equal ids get equal numbers, in the order of their first device.
[[nodiscard]] std::vector<Lane> lanes_of(std::span<Device* const> devices, std::span<const DeviceCost> costs);
[[nodiscard]] std::size_t pools_of(std::span<const Lane> lanes);
[[nodiscard]] std::size_t memories_of(std::span<const Lane> lanes);
// What Lane::memory is a number of: in the host's memory, which nobody bounds, each pool is one of its own.
[[nodiscard]] std::string_view memory_of(const DeviceInfo& device);

// Whether a copy between two pools first goes to the host's memory, and then from there.
[[nodiscard]] bool goes_through_host(const Lane& from, const Lane& to);
// Of a copy that waits for nothing; 0 within one pool.
[[nodiscard]] Prediction predict_copy(const Lane& from, const Lane& to, std::uint64_t bytes);

struct Span {
  double start_us = 0;
  double end_us = 0;
};

class Timeline {
 public:
  // `lanes` must outlive it.
  explicit Timeline(std::span<const Lane> lanes) : lanes_(lanes) { reset(); }
  void reset();

  // A step of ops that take `us` together, once what it needs is `ready`. Its start may wake the device.
  Span compute(std::uint32_t device, double ready_us, double us);
  // A copy between two pools, through the host where they have no link of their own.
  Span transfer(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, double ready_us);
  // Its halves, for who has others begin between them.
  Span to_host(std::uint32_t from, std::uint64_t bytes, double ready_us);
  Span from_host(std::uint32_t to, std::uint64_t bytes, double ready_us);

  [[nodiscard]] double free_us(std::uint32_t device) const { return resource_free_[lanes_[device].resource]; }
  [[nodiscard]] double end_us() const { return end_us_; }

 private:
  Span copy(const LinkRates& link, std::uint64_t bytes, double ready_us, double& link_free);

  std::span<const Lane> lanes_;
  std::vector<double> resource_free_;  // by resource
  std::vector<double> to_free_;        // by device: its link, towards it
  std::vector<double> from_free_;
  double end_us_ = 0;
};

}  // namespace shunt
