// Turns a placement into a plan: steps, copies, lifetimes, storage, and the time that all of it takes. A pure function.
#pragma once

#include "plan/placement.h"
#include "plan/plan.h"

namespace shunt {

[[nodiscard]] Plan schedule(const PlanProblem& problem, Placement placement);

}  // namespace shunt
