// Where the time of a model's steps went, from a trace: a table for each kind of step, whose rows add up to its time.
//
// A row says what went on while none of the rows before it did. If the trace has limits (step_limits.h), they split the
// first row, and give a bound. `shunt bench hybrid` and `shunt report` print these tables. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "output.h"
#include "plan/regret.h"
#include "shunt/trace.h"
#include "step_limits.h"

namespace shunt::cli {

struct StepTimes {
  bool is_generation = false;  // each token of the step is the next of a sequence
  std::uint32_t tokens = 0;    // of a step; at most, unless it is known
  bool knows_tokens = false;   // exactly, or on average
  std::uint64_t steps = 0;
  // Means of a step.
  double us = 0;
  double predicted_us = 0;         // 0: no prediction, since each op was timed alone
  std::optional<double> bound_us;  // if the trace has limits
  std::vector<StepPart> parts;

  [[nodiscard]] double tokens_per_s() const;  // 0: unknown
};

// Returns the times of generation, then those of prompts, from the longest steps to the shortest. `plans`: those of the
// recording. Empty if these are not steps of a language model, or if the recording has no origin.
[[nodiscard]] std::vector<StepTimes> step_times_of(const trace::Recording& recording,
                                                   std::span<const PlanRegret> plans);

[[nodiscard]] Json to_json(const StepTimes& times);
[[nodiscard]] std::string to_text(const StepTimes& times);

}  // namespace shunt::cli
