// Chooses by what a graph is computed: its nodes, or fused rows that stand for several. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/problem.h"

namespace shunt {

struct UnitRules {
  bool fuse = true;
  // A number for each node: those of different ones are not fused. Empty: all alike.
  std::span<const std::uint32_t> apart = {};
};

// In an order in which they can run. Nodes are fused only on one device, and where that device gains by it.
// `device_of_node`: where each node is to run; empty: wherever it is fastest.
[[nodiscard]] std::vector<Unit> choose_units(const PlanProblem& problem, std::span<const std::uint32_t> device_of_node,
                                             const UnitRules& rules);

}  // namespace shunt
