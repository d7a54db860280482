// Chooses the units (nodes or fused rows) of a graph and a device for each, with the reason.
#pragma once

#include "plan/planner.h"

namespace shunt {

struct Placement {
  std::vector<Unit> units;  // in an order in which they can run
  std::vector<Decision> decisions;
  double bound_us = 0;  // as in Plan
};

[[nodiscard]] Result<Placement> place(const PlanRequest& request);

}  // namespace shunt
