// What no placement can beat: a lower bound by Lagrangian duality, that tells how far a search may be from the best.
#pragma once

#include "plan/search.h"

namespace shunt {

// Microseconds that every placement within the budgets takes at least. It counts work and weights, not copies and
// launches. `found_us` is the time of one that is possible; a bound that has come as far as it is not looked for
// further.
[[nodiscard]] double lower_bound_us(const SearchProblem& problem, double found_us);

}  // namespace shunt
