#include "run/plan_graph.h"

#include <utility>
#include <vector>

#include "plan/planner.h"
#include "plan/tensor_split.h"
#include "run/strategy.h"

namespace shunt {
namespace {

PlanRequest request_of(const Graph& graph, std::span<const RowSplit> splits, const DeviceSet& set, Strategy strategy,
                       std::optional<double> margin) {
  return {.graph = &graph,
          .devices = set.devices,
          .costs = set.costs,
          .where = Search{.preferred = preferred_device(strategy, set.devices),
                          .strict = set.strict,
                          .margin = margin,
                          .suggested = suggestions(graph, splits)},
          .budget_bytes = {set.budgets.begin(), set.budgets.end()},
          .quarantined = set.quarantined};
}

}  // namespace

Result<PlannedGraph> plan_graph(const Graph& graph, const DeviceSet& set, Strategy strategy,
                                std::optional<double> margin) {
  if (strategy == Strategy::layers)
    return fail(Code::invalid, "strategy layers is for language models: a graph of your own has no layers");
  const auto request_for = [&](const Graph& placed, std::span<const RowSplit> splits) {
    return request_of(placed, splits, set, strategy, margin);
  };
  Result<Plan> plan = make_plan(request_for(graph, {}));
  const auto us_of = [&](std::span<const RowSplit> splits) -> Result<double> {
    SHUNT_TRY_ASSIGN(const Graph split, split_rows(graph, splits));
    SHUNT_TRY_ASSIGN(const Plan its, make_plan(request_for(split, splits)));
    return its.predicted_us;
  };
  const std::vector<RowSplit> splits = choose_splits(request_for(graph, {}), plan ? &*plan : nullptr, us_of);
  if (splits.empty()) {
    if (!plan) return std::unexpected(std::move(plan).error());
    return PlannedGraph{.graph = graph, .plan = *std::move(plan)};
  }
  SHUNT_TRY_ASSIGN(Graph split, split_rows(graph, splits));
  SHUNT_TRY_ASSIGN(Plan its, make_plan(request_for(split, splits)));
  return PlannedGraph{.graph = std::move(split), .plan = std::move(its)};
}

void explain_graph(PlannedGraph& planned, const DeviceSet& set, Strategy strategy, std::optional<double> margin) {
  explain(request_of(planned.graph, {}, set, strategy, margin), planned.plan);
}

}  // namespace shunt
