// When the steps of a plan begin and end: each processor and link does one thing at a time. The planner's search and
// the plan itself use the same timeline. Plain values; one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "plan/costs/cost.h"
#include "plan/plan.h"

namespace shunt {

// A device as the timeline sees it. Devices are indices; pools, memories and resources have numbers of their own.
struct Lane {
  std::uint32_t pool = 0;
  std::uint32_t memory = 0;  // what budgets bound; several pools share one if a GPU is used through several APIs
  std::uint32_t resource = 0;
  double launch_us = 0;  // of a step
  double wake_us = 0;    // added after a pause
  LinkRates to_host;     // zero if its memory is the host's
  LinkRates from_host;
  LinkRates weights_from_host;
  LinkRates from_peers;
  double reads_beside_weights = 1;  // the share of its rate at which the processor reads memory meanwhile
  double weights_beside_reads = 1;  // and that at which they then travel
  bool pins_memory = false;         // whether weights and state are copied from where they are
  bool links_to_peers = false;
  bool one_way_at_a_time = false;  // its copies to and from the host wait for each other
  // Weights copied to it for a step come in batches of at most this size, so that computing begins before all have
  // arrived. Further ones arrive meanwhile: those that are there or on their way have at most so many bytes.
  std::uint64_t batch_bytes = std::uint64_t{64} << 20U;
  std::uint64_t window_bytes = std::uint64_t{512} << 20U;
};

// Returns one lane per device, in order. Equal ids get equal numbers, in the order of their first device.
[[nodiscard]] std::vector<Lane> lanes_of(std::span<Device* const> devices, std::span<const DeviceCost> costs);
[[nodiscard]] std::size_t pools_of(std::span<const Lane> lanes);
[[nodiscard]] std::size_t memories_of(std::span<const Lane> lanes);
// The id that Lane::memory numbers. Host memory has no bound: there each pool is a memory of its own.
[[nodiscard]] std::string_view memory_of(const DeviceInfo& device);
// Reduces the budget of each device to the least of those with the same memory.
void share_least_budgets(std::span<Device* const> devices, std::span<std::uint64_t> budget_bytes);

// Returns whether a copy between two pools goes by way of the host's memory.
[[nodiscard]] bool goes_through_host(const Lane& from, const Lane& to);
// Returns what a copy takes the time of: only weights and state in the host's memory have a rate of their own.
[[nodiscard]] Copied priced_as(const Lane& from, const Lane& to, Copied what);
// Returns whether copying so much takes no longer than starting a few steps.
[[nodiscard]] bool is_brief(const Lane& from, const Lane& to, std::uint64_t bytes);
// Predicts a copy that waits for nothing; 0 within one pool.
[[nodiscard]] Prediction predict_copy(const Lane& from, const Lane& to, std::uint64_t bytes,
                                      Copied what = Copied::value);

// The weights that are copied to a device ahead of use, the first ones first.
class CopyWindow {
 public:
  // Adds a weight that `user` reads. Returns the last user that must have ended before its copy begins, so that there
  // is room for it; kNone: none.
  std::uint32_t add(std::uint32_t user, std::uint64_t bytes, std::uint64_t window_bytes);

 private:
  struct Weight {
    std::uint32_t user;
    std::uint64_t bytes;
  };
  std::deque<Weight> weights_;
  std::uint64_t bytes_ = 0;
  std::uint32_t ended_ = kNone;
};

struct Span {
  double start_us = 0;
  double end_us = 0;
};

class Timeline {
 public:
  // `lanes` must outlive it.
  explicit Timeline(std::span<const Lane> lanes) : lanes_(lanes) { reset(); }
  void reset();

  // Adds a step of ops that take `us` together, starting at `ready_us` at the earliest. Its start may wake the device.
  Span compute(std::uint32_t device, double ready_us, double us);
  // Adds a copy between two pools, by way of the host if they have no direct link.
  Span transfer(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, double ready_us);
  // The two halves of such a copy, for callers that let others begin in between.
  Span to_host(std::uint32_t from, std::uint64_t bytes, double ready_us, Copied what = Copied::value);
  Span from_host(std::uint32_t to, std::uint64_t bytes, double ready_us, Copied what = Copied::value);
  // A copy between two pools with a direct link.
  Span from_peer(std::uint32_t to, std::uint64_t bytes, double ready_us);

  [[nodiscard]] double free_us(std::uint32_t device) const { return resource_free_[lanes_[device].resource]; }
  [[nodiscard]] double end_us() const { return end_us_; }

 private:
  // Returns how long what reads the host's memory for `us` alone takes beside weights that are on their way, and delays
  // those.
  double beside_weights(double start, double us);
  Span copy(const LinkRates& link, std::uint64_t bytes, double ready_us, double& link_free);

  std::span<const Lane> lanes_;
  std::vector<double> resource_free_;  // by resource
  std::vector<double> to_free_;        // by device: its inbound link, for values, also those of peers
  std::vector<double> weights_free_;   // by device: the same for weights, which values pass
  std::vector<double> from_free_;
  double end_us_ = 0;
};

}  // namespace shunt
