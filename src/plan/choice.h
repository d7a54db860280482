// Chooses a device for each node of a graph: the whole is predicted to end first there, within the memory that pools
// may give. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/planner.h"

namespace shunt {

struct Choice {
  std::vector<std::uint32_t> device_of_node;  // as PlanRequest::device_of_node
  double bound_us = 0;                        // no choice takes less; 0: not known
  // A faster choice that gains less than the margin, in the same form; empty: there is none.
  std::vector<std::uint32_t> within_margin;
  // For each node, then device: what weights and state of the node, and of all that must run beside it, would take more
  // there, and what is left to them. Empty: no memory is bounded.
  struct Room {
    std::uint64_t needed_bytes = 0;
    std::uint64_t free_bytes = kNoBudget;
  };
  std::vector<Room> rooms;
};

// Nothing where no placement of the whole is possible, of which a device for each unit in turn may say why. A mix of
// devices is chosen only where it gains more than the request's margin.
[[nodiscard]] std::optional<Choice> choose_devices(const PlanRequest& request);

}  // namespace shunt
