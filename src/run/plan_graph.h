// Plans a caller's own graph. Plain functions; any thread.
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
  Graph graph;  // with large products split, if that is better
  Plan plan;
  std::vector<std::uint32_t> homes = {};  // where others hold its weights and state, as Search::homes; empty: itself
};

// Errors: invalid for Strategy::layers, since a graph has no layers; those of make_plan().
[[nodiscard]] Result<PlannedGraph> plan_graph(const Graph& graph, const DeviceSet& set, Strategy strategy,
                                              std::optional<double> margin);

// Works as explain(), for a plan that plan_graph() made from the same arguments.
void explain_graph(PlannedGraph& planned, const DeviceSet& set, Strategy strategy, std::optional<double> margin);

}  // namespace shunt
