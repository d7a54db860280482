// Which weights are worth splitting by rows among devices, and how.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/row_split.h"
#include "plan/planner.h"

namespace shunt {

// Weights that a device cannot bind whole, in parts that each can; then, for what `plan` has one device compute, in
// proportion to what each device takes, or to where it could put its weights, if that may save enough. `plan` is that
// of the request, null where there is none. Pure functions.
[[nodiscard]] std::vector<RowSplit> splits_for_binding(const PlanRequest& request);
[[nodiscard]] std::vector<RowSplit> splits_for_speed(const PlanRequest& request, const Plan& plan);

// For Search::suggested, of a graph that is split like that.
[[nodiscard]] std::vector<std::uint32_t> suggestions(const Graph& graph, std::span<const RowSplit> splits);

// Those of them that pay. `us_of` predicts the time of all the work with some splits; it is called only where there is
// something to split. Errors: none; what cannot be planned does not pay.
using TimeOfSplits = std::function<Result<double>(std::span<const RowSplit>)>;
[[nodiscard]] std::vector<RowSplit> choose_splits(const PlanRequest& request, const Plan* plan,
                                                  const TimeOfSplits& us_of);

}  // namespace shunt
