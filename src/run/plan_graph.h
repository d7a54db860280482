// Plans a graph of one's own. A plain function; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "run/pool/device_pool.h"
#include "shunt/graph.h"
#include "shunt/strategy.h"

namespace shunt {

struct PlannedGraph {
  Graph graph;  // with its large products in parts, where that is better
  Plan plan;
  std::vector<std::uint32_t> homes = {};  // where others hold its weights and state, as Search::homes; empty: it does
};

// Errors: invalid for Strategy::layers, of which a graph has none; those of make_plan().
[[nodiscard]] Result<PlannedGraph> plan_graph(const Graph& graph, const DeviceSet& set, Strategy strategy,
                                              std::optional<double> margin);

// As explain(), of a plan that plan_graph() made of the same.
void explain_graph(PlannedGraph& planned, const DeviceSet& set, Strategy strategy, std::optional<double> margin);

}  // namespace shunt
