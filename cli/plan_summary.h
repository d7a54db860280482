// The summary of a model's plans that `shunt plan` shows. Plain functions.
#pragma once

#include <cstdint>
#include <string>

#include "output.h"
#include "run/plan_graph.h"

namespace shunt::cli {

// The plans of a model's two kinds of steps.
struct PlannedSteps {
  const PlannedGraph& prompt;  // of `prompt_tokens` tokens
  const PlannedGraph& generation;
  std::uint32_t prompt_tokens = 0;
};

// Returns predicted speeds, the bottleneck, and for each device its layers and memory.
[[nodiscard]] std::string summary_of(const PlannedSteps& steps);
// Returns the speeds and the bottleneck.
[[nodiscard]] Json to_json(const PlannedSteps& steps);

}  // namespace shunt::cli
