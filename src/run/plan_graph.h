// Plans a graph of one's own. A plain function; any thread.
#pragma once

#include <optional>

#include "plan/plan.h"
#include "run/fleet.h"
#include "shunt/graph.h"
#include "shunt/strategy.h"

namespace shunt {

struct PlannedGraph {
  Graph graph;  // with its large products in parts, where that is better
  Plan plan;
};

// Errors: invalid for Strategy::layers, of which a graph has none; those of make_plan().
[[nodiscard]] Result<PlannedGraph> plan_graph(const Graph& graph, const DeviceSet& set, Strategy strategy,
                                              std::optional<double> margin);

}  // namespace shunt
