// Chooses a device for each node of a graph: the whole is predicted to end first there, within the memory that pools
// may give. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/problem.h"

namespace shunt {

struct Choice {
  std::vector<std::uint32_t> device_of_node;  // as that of GivenPlaces
  double bound_us = 0;                        // no choice takes less; 0: not known
  // A faster choice that gains less than the margin, in the same form; empty: there is none.
  std::vector<std::uint32_t> within_margin;
  // For each node, then device: whether all that must run beside the node can run there, how much more its weights and
  // state would take there, and what is left to them.
  struct Room {
    bool can_run = true;
    std::uint64_t needed_bytes = 0;
    std::uint64_t free_bytes = kNoBudget;
    [[nodiscard]] bool is_lacking() const { return needed_bytes > free_bytes; }
  };
  std::vector<Room> rooms;  // empty: there is one device
};

// Nothing where no placement of the whole is possible, of which a device for each unit in turn may say why. A mix of
// devices is chosen only where it gains more than the margin.
[[nodiscard]] std::optional<Choice> choose_devices(const PlanProblem& problem, const Search& search);

}  // namespace shunt
