// How a session spreads its work over the devices: the placement of a step's graph that each strategy stands for.
// Plain functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shunt/graph.h"
#include "shunt/model.h"

namespace shunt::models {

// "auto: by predicted time; layers: ..."
[[nodiscard]] std::string describe_strategies();

// For PlanRequest::device_of_node: the device of each node, or nothing where the planner is to choose. The nodes of
// layer N are named "blk.N.*"; those before the first layer stay with it, those after the last one with that.
// REQUIRES: devices > 0.
[[nodiscard]] std::vector<std::uint32_t> place_nodes(Strategy strategy, const Graph& graph, std::size_t devices);

}  // namespace shunt::models
