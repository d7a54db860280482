// What a trace comes to, for the top of a report: a verdict, failures, memory by device and how long tokens took. Plain
// functions.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "plan/regret.h"
#include "shunt/trace.h"

namespace shunt::cli {

// What the plans of a trace take of one memory at most.
struct MemoryOfDevices {
  std::string devices;  // that compute in it, by their ids, or the memory's name
  std::uint64_t weight_bytes = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  [[nodiscard]] std::uint64_t total() const { return weight_bytes + state_bytes + value_bytes + scratch_bytes; }
};

// Of a language model, by the runs of its steps.
struct Latency {
  double first_token_us = 0;     // from the first event to the end of the prompt's last step; 0: not known
  std::vector<double> token_us;  // between the ends of two steps of generation, sorted

  // The least that is no less than this part of them; 0 where there are none.
  [[nodiscard]] double percentile(double part) const;
};

struct Verdict {
  std::string sentence;  // what ran where, what was lost, and what would be better
  std::vector<std::string> failures;
  std::vector<MemoryOfDevices> memory;
  Latency latency;
};

[[nodiscard]] Verdict verdict_of(const trace::Recording& recording, const trace::ExecutionSummary& summary,
                                 const std::vector<PlanRegret>& plans);
[[nodiscard]] Json to_json(const Verdict& verdict);
[[nodiscard]] std::string to_text(const Verdict& verdict);

}  // namespace shunt::cli
