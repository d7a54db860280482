// Chooses by what a graph is computed: its nodes, or fused rows that stand for several. Pure functions.
#pragma once

#include "plan/planner.h"
#include "plan/timeline.h"

namespace shunt {

// In an order in which they can run. REQUIRES: request.prices.
[[nodiscard]] std::vector<Unit> choose_units(const PlanRequest& request);

// The device that the caller named for a unit, or kNone.
[[nodiscard]] std::uint32_t by_hand(const PlanRequest& request, const Unit& unit);
// PlanRequest::homes of a base tensor.
[[nodiscard]] inline std::uint32_t home_of(const PlanRequest& request, TensorId base) {
  return request.homes.empty() ? kNone : request.homes[base];
}
// Of its devices, with their room for weights that are elsewhere.
[[nodiscard]] std::vector<Lane> lanes_for(const PlanRequest& request);
// The first tensor of a unit that the device cannot bind whole, or kNone.
[[nodiscard]] TensorId too_large_for(const PlanRequest& request, const Unit& unit, std::uint32_t device);

}  // namespace shunt
