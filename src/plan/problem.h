// A planning problem: a graph and everything known about the devices, before anything is decided. Planning turns it
// into a placement (placement.h), then into a plan (schedule.h), and on request into an explained plan (planner.h). One
// thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/planner.h"
#include "plan/timeline.h"

namespace shunt {

// Returns whether it is a weight of which each device keeps a copy, wherever its home is.
[[nodiscard]] bool is_small_weight(const Operand& operand);

struct PlanProblem {
  // REQUIRES: everything that the request points to outlives the problem.
  explicit PlanProblem(const PlanRequest& request);
  PlanProblem(const PlanProblem&) = delete;
  PlanProblem& operator=(const PlanProblem&) = delete;
  ~PlanProblem() = default;

  // Sets the bytes that each device may give; empty: no limit.
  void set_budgets(std::vector<std::uint64_t> bytes);

  // Sets a device's room for weights and state that are elsewhere.
  void set_window(std::size_t device, std::uint64_t bytes);

  // The device whose memory already holds a base tensor, or kNone.
  [[nodiscard]] std::uint32_t home_of(TensorId base) const { return homes.empty() ? kNone : homes[base]; }
  // Returns whether devices other than the home of a base tensor, which has one, may copy it for a plan's duration: if
  // that is in the host's memory. What is in another device's is used there, beside what others do.
  [[nodiscard]] bool may_travel(TensorId base) const;
  // Returns whether a weight or state is only for devices that see the memory of its home.
  [[nodiscard]] bool must_stay(TensorId base) const;
  // Returns whether it is, and the device does not.
  [[nodiscard]] bool stays_elsewhere(TensorId base, std::uint32_t device) const {
    return must_stay(base) && lanes[home_of(base)].pool != lanes[device].pool;
  }
  // The device that a base tensor is copied from whenever its memory was lent, or kNone.
  [[nodiscard]] std::uint32_t lender_of(TensorId base) const { return lent_from.empty() ? kNone : lent_from[base]; }
  // The first tensor of a unit that the device cannot bind whole, or kNone.
  [[nodiscard]] TensorId too_large_for(const Unit& unit, std::uint32_t device) const;
  // Returns a device that was measured, if this one was not, uses the same processors and memory, and promises no more;
  // else kNone.
  [[nodiscard]] std::uint32_t measured_twin_of(std::uint32_t device) const;
  // Returns whether all devices were measured, or have measured twins.
  [[nodiscard]] bool is_measured() const;

  const Graph& graph;
  const std::span<Device* const> devices;
  const bool fuse;
  const std::vector<DeviceCost> priors;  // used if the request has no costs
  const std::span<const DeviceCost> costs;
  std::optional<CostCache> own_cache;  // used if the request has none
  CostCache* const cost_cache;
  const std::span<const std::uint32_t> homes;
  const std::span<const std::uint32_t> lent_from;
  const std::span<const std::uint64_t> arena_bytes;
  const bool state_travels;
  std::vector<std::uint64_t> budget_bytes;
  std::vector<Lane> lanes;  // one per device, with its room for weights that are elsewhere
};

}  // namespace shunt
