// Chooses the units (nodes or fused ops) of a graph and a device for each, with the reason. Pure functions.
#pragma once

#include <vector>

#include "plan/problem.h"

namespace shunt {

struct Placement {
  std::vector<Unit> units;  // in an order in which they can run
  std::vector<Decision> decisions;
  double bound_us = 0;  // as in Plan
};

// Errors: unsupported if no device, or not the given one, can run a unit.
[[nodiscard]] Result<Placement> place(const PlanProblem& problem, const Where& where);

// Returns why the search kept a unit on its chosen device. REQUIRES: all other candidates have been judged.
[[nodiscard]] Reason reason_found(const Decision& decision, std::uint32_t preferred);

// Returns the places that are given rather than searched for; null: they are to be searched.
[[nodiscard]] const std::vector<std::uint32_t>* given_places(const Where& where);

}  // namespace shunt
