// Splits weights by their rows, so that each device can hold and multiply a part of one. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shunt/graph.h"

namespace shunt {

struct RowSplit {
  std::string weight;               // [rows, columns], by its name
  std::vector<std::uint32_t> rows;  // of each part, in order; their sum is that of the weight
  // For who places the parts: the device that each is meant for; empty: nobody has thought of one.
  std::vector<std::uint32_t> devices;
};

// The same graph, in which linear ops with these weights are made by part. Elementwise ops on what is split alike stay
// split, and what normalizes the input of a linear is computed for each part again, so that a device can fuse both;
// other ops get the parts put together, under the name of what was split. Inputs, state and outputs keep their names
// and their order. Weights that are not there, and uses by other ops, stay as they are.
// Errors: invalid where the rows of a split are not those of its weight.
[[nodiscard]] Result<Graph> split_rows(const Graph& graph, std::span<const RowSplit> splits);

}  // namespace shunt
