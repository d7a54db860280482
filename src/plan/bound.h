// A lower bound on the time of every placement, by Lagrangian duality. It tells how far a search may be from the best.
#pragma once

#include "plan/search.h"

namespace shunt {

// Returns microseconds that every placement within the budgets takes at least. It counts work and weights, but not
// copies and launches. `found_us` is the time of a known placement; the search for a better bound ends once it is
// reached.
[[nodiscard]] double lower_bound_us(const SearchProblem& problem, double found_us);

}  // namespace shunt
