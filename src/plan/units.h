// Chooses the units that compute a graph: its nodes, or fused ops that stand for several. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/problem.h"

namespace shunt {

struct UnitRules {
  bool fuse = true;
  // A number for each node; nodes with different numbers are not fused. Empty: any may be.
  std::span<const std::uint32_t> apart = {};
};

// Returns units in an order in which they can run. Nodes are fused only on one device, and only if it gains by that.
// `device_of_node`: where each node is to run; empty: wherever it is fastest.
[[nodiscard]] std::vector<Unit> choose_units(const PlanProblem& problem, std::span<const std::uint32_t> device_of_node,
                                             const UnitRules& rules);

}  // namespace shunt
