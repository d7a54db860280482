// A plan's problem as the search takes it: nodes that run on one device whatever happens are a group. Plain functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/search.h"
#include "plan/units.h"

namespace shunt {

struct Groups {
  SearchProblem problem;
  std::vector<std::uint32_t> of_node;
};

// Nodes are joined where a device would fuse them as `rules` allow, where they use the same state, and views with what
// they show. Of a `preferred` device all others are as if they were much slower; kNone: none is.
[[nodiscard]] Groups group_nodes(const PlanProblem& problem, const UnitRules& rules, std::uint32_t preferred);

}  // namespace shunt
