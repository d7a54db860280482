// Chooses the units (nodes or fused rows) of a graph and a device for each, with the reason. A pure function.
#pragma once

#include <vector>

#include "plan/problem.h"

namespace shunt {

struct Placement {
  std::vector<Unit> units;  // in an order in which they can run
  std::vector<Decision> decisions;
  double bound_us = 0;  // as in Plan
};

// Errors: unsupported where no device, or not the given one, can run a unit.
[[nodiscard]] Result<Placement> place(const PlanProblem& problem, const Where& where);

// Why a search left the chosen one of a decision its unit, when all other candidates are judged.
[[nodiscard]] Reason reason_found(const Decision& decision, std::uint32_t preferred);

// The places that were not searched for; null: they are to be.
[[nodiscard]] const std::vector<std::uint32_t>* given_places(const Where& where);

}  // namespace shunt
