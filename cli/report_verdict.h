// The top of a report: the verdict, failures, memory by device, and the latency of tokens. Plain functions.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "plan/regret.h"
#include "shunt/trace.h"

namespace shunt::cli {

// The most that the plans of a trace take of one memory pool.
struct MemoryOfDevices {
  std::string devices;  // ids of the devices that compute in it, or the name of the pool
  std::uint64_t weight_bytes = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  [[nodiscard]] std::uint64_t total() const { return weight_bytes + state_bytes + value_bytes + scratch_bytes; }
};

// The latency of a language model, from the runs of its steps.
struct Latency {
  double first_token_us = 0;     // from the first event to the end of the prompt's last step; 0: unknown
  std::vector<double> token_us;  // times between the ends of consecutive steps of generation, sorted

  // The least time that is no shorter than this share of them; 0 if there are none.
  [[nodiscard]] double percentile(double part) const;
};

struct Verdict {
  std::string sentence;  // what ran where, what failed, and what would be faster
  std::vector<std::string> failures;
  std::vector<MemoryOfDevices> memory;
  Latency latency;
};

[[nodiscard]] Verdict verdict_of(const trace::Recording& recording, const trace::ExecutionSummary& summary,
                                 const std::vector<PlanRegret>& plans);
[[nodiscard]] Json to_json(const Verdict& verdict);
[[nodiscard]] std::string to_text(const Verdict& verdict);

}  // namespace shunt::cli
