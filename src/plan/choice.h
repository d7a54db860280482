// Chooses a device for each node of a graph so that the whole is predicted to end first, within the memory budgets.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/problem.h"

namespace shunt {

struct Choice {
  std::vector<std::uint32_t> device_of_node;  // as in GivenPlaces
  double bound_us = 0;                        // lower bound on any choice; 0: unknown
  // A faster choice that gains less than the margin, in the same form; empty: none.
  std::vector<std::uint32_t> within_margin;
  // The room for a node on a device. It says whether the node's whole group can run there, how many more bytes the
  // group's weights and state would need there, and how many are free.
  struct Room {
    bool can_run = true;
    std::uint64_t needed_bytes = 0;
    std::uint64_t free_bytes = kNoBudget;
    [[nodiscard]] bool is_lacking() const { return needed_bytes > free_bytes; }
  };
  std::vector<Room> rooms;  // by node, then device; empty: there is one device
};

// Returns nothing if no placement of the whole graph is possible; placing each unit in turn may then say why. Chooses a
// mix of devices only if it gains more than the margin.
[[nodiscard]] std::optional<Choice> choose_devices(const PlanProblem& problem, const Search& search);

}  // namespace shunt
