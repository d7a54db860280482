// Turns a planning problem into a search problem. A group is a set of nodes that always run on one device. Plain
// functions.
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

// Groups nodes that a device would fuse as `rules` allow, nodes that use the same state, nodes that do the same with
// one large weight, and views with what they show. With a `preferred` device, all others count as much slower; kNone:
// none is preferred.
[[nodiscard]] Groups group_nodes(const PlanProblem& problem, const UnitRules& rules, std::uint32_t preferred);

}  // namespace shunt
