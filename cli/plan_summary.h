// The summary of a model's plans that `shunt plan` shows. Plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"
#include "run/plan_graph.h"

namespace shunt::cli {

// The plans of a model's two kinds of steps.
struct PlannedSteps {
  const PlannedGraph& prompt;  // of `prompt_tokens` tokens
  const PlannedGraph& generation;
  std::uint32_t prompt_tokens = 0;
};

// Returns what a plan uses of each memory. Weights whose memory prompts use as well count as values, as they are in the
// arena that all steps share.
[[nodiscard]] std::vector<MemoryUse> memory_by_place(const Plan& plan);

// Returns predicted speeds, the bottleneck, and for each device its layers and memory.
[[nodiscard]] std::string summary_of(const PlannedSteps& steps);
// Returns the speeds and the bottleneck.
[[nodiscard]] Json to_json(const PlannedSteps& steps);

}  // namespace shunt::cli
