// Chooses a device for each node of a graph: the whole is predicted to end first there, within the memory that pools
// may give. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "plan/planner.h"

namespace shunt {

struct Choice {
  std::vector<std::uint32_t> device_of_node;  // as PlanRequest::device_of_node
  double bound_us = 0;                        // no choice takes less; 0: not known
};

// Nothing where no placement of the whole is possible, of which a device for each unit in turn may say why. A mix of
// devices is chosen only where it gains more than the request's margin.
[[nodiscard]] std::optional<Choice> choose_devices(const PlanRequest& request);

}  // namespace shunt
