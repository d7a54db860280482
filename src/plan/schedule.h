// Turns a placement into a plan: steps, copies, lifetimes, storage and predicted times. A pure function.
#pragma once

#include "plan/placement.h"
#include "plan/plan.h"

namespace shunt {

[[nodiscard]] Plan schedule(const PlanProblem& problem, Placement placement);

}  // namespace shunt
