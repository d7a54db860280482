// When each step of a plan begins and ends, were all predictions right. Pure function.
#pragma once

#include <span>

#include "plan/plan.h"
#include "plan/timeline.h"

namespace shunt {

// Sets start_us and end_us of every step and returns when the last one ends. Steps begin as the executor starts them:
// in the order in which what they wait for has ended. REQUIRES: one lane per device of the plan.
double rehearse(Plan& plan, std::span<const Lane> lanes);

}  // namespace shunt
