// Splits weights by their rows, so that each device can hold and multiply a part of one. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shunt/graph.h"

namespace shunt {

struct RowSplit {
  std::string weight;               // the name of a weight [rows, columns]
  std::vector<std::uint32_t> rows;  // of each part, in order; they add up to those of the weight
  // The device that each part is meant for; empty: no suggestion.
  std::vector<std::uint32_t> devices;
};

// Returns the same graph with linear ops by these weights computed in parts. Elementwise ops on operands that are split
// alike stay split. The norm of a linear's input is computed again for each part, so that a device can fuse both. Other
// ops get the parts joined, under the name of the tensor that was split. Inputs, state and outputs keep their names and
// their order. Weights that do not exist, and uses by other ops, stay as they are. Errors: invalid if the rows of a
// split do not match its weight.
[[nodiscard]] Result<Graph> split_rows(const Graph& graph, std::span<const RowSplit> splits);

}  // namespace shunt
