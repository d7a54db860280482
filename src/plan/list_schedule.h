// A start for the search: a list schedule, which places each group where it ends first. A pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/search.h"

namespace shunt {

// Places groups in turn on the device where each would end first, within budgets. Links carry weights one after the
// other, ahead of use. `us_of_group`: by group and device; kCannot: it is not to be placed there. Returns a device for
// each group, or nothing if one has no room anywhere.
[[nodiscard]] std::vector<std::uint32_t> place_where_each_ends_first(const SearchProblem& problem,
                                                                     std::span<const double> us_of_group);

}  // namespace shunt
