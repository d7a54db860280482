// How a session spreads its work over the devices: the strategies that a user can name, and the placement of a
// step's graph that each stands for. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shunt/graph.h"

namespace shunt::models {

// X(enumerator, name, meaning).
#define SHUNT_STRATEGIES(X)                 \
  X(automatic, "auto", "by predicted time") \
  X(layers, "layers", "layers in turn")

enum class Strategy : std::uint8_t {
#define SHUNT_STRATEGY(strategy, name, meaning) strategy,
  SHUNT_STRATEGIES(SHUNT_STRATEGY)
#undef SHUNT_STRATEGY
};
[[nodiscard]] std::string_view name_of(Strategy strategy);
// Errors: invalid, with the list of names.
[[nodiscard]] Result<Strategy> strategy_from_name(std::string_view name);
// "auto: by predicted time; layers: ..."
[[nodiscard]] std::string describe_strategies();

// For PlanRequest::device_of_node: the device of each node, or nothing where the planner is to choose. The nodes of
// layer N are named "blk.N.*"; those before the first layer stay with it, those after the last one with that.
// REQUIRES: devices > 0.
[[nodiscard]] std::vector<std::uint32_t> place_nodes(Strategy strategy, const Graph& graph, std::size_t devices);

}  // namespace shunt::models
