// Chooses a device for each node of a graph: the whole is predicted to end first there, within the memory that pools
// may give. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "plan/planner.h"

namespace shunt {

// By node, as PlanRequest::device_of_node; nothing where no placement of the whole is possible, of which a device for
// each unit in turn may say why. A mix of devices is chosen only where it gains more than the request's margin.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> choose_devices(const PlanRequest& request);

}  // namespace shunt
