// Decides which weights are worth splitting by rows among devices, and how. Pure functions.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/row_split.h"
#include "plan/planner.h"

namespace shunt {

// The first splits weights that a device cannot bind whole into parts that each device can. The second splits weights
// that `plan` multiplies on one device, in proportion to each device's speed or to its room for weights, if that may
// save enough.
[[nodiscard]] std::vector<RowSplit> splits_for_binding(const PlanRequest& request);
[[nodiscard]] std::vector<RowSplit> splits_for_speed(const PlanRequest& request, const Plan& plan);

// Returns Search::suggested for a graph with these splits.
[[nodiscard]] std::vector<std::uint32_t> suggestions(const Graph& graph, std::span<const RowSplit> splits);

// Returns the splits that pay. `plan` is the request's plan, or null. `us_of` predicts the time of all the work with
// some splits; it is called only if there is something to split. Errors: none; what cannot be planned does not pay.
using TimeOfSplits = std::function<Result<double>(std::span<const RowSplit>)>;
[[nodiscard]] std::vector<RowSplit> choose_splits(const PlanRequest& request, const Plan* plan,
                                                  const TimeOfSplits& us_of);

}  // namespace shunt
