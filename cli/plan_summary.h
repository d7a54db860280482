// What `shunt plan` shows of a model's plans on one screen. Plain functions.
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

// Predicted speeds, the bottleneck, what runs where by layers, and the memory of each device.
[[nodiscard]] std::string summary_of(const PlannedSteps& steps);
// The speeds and the bottleneck.
[[nodiscard]] Json to_json(const PlannedSteps& steps);

}  // namespace shunt::cli
