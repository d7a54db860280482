// The limits of the steps of a model that runs on a GPU and the processor together: rates of the machine, and the
// weights that each step reads. `shunt bench hybrid` measures it and attaches it to its trace. Plain values; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "output.h"
#include "shunt/trace.h"
#include "trace/recorder.h"

namespace shunt::cli {

struct StepLimits {
  // The weights that a step reads.
  std::uint64_t weight_bytes = 0;
  std::uint64_t host_weight_bytes = 0;        // those in host memory
  std::uint64_t least_host_weight_bytes = 0;  // those that would be there if weights took all of the GPU's budget
  double weight_elements = 0;                 // of matrices
  // Rates, measured just now or told by drivers; 0: unknown.
  double read_bytes_per_s = 0;  // of host memory, by the processor
  double read_bytes_per_s_beside_weights = 0;
  double link_bytes_per_s = 0;  // of weights to the GPU
  double link_bytes_per_s_beside_reads = 0;
  double gpu_bytes_per_s = 0;  // of its memory
  double gpu_flops_per_s = 0;
  std::uint32_t prompt_tokens = 0;  // of a step, on average
};

// A part of a step's time.
struct StepPart {
  std::string what;
  double us = 0;
};

// Each function below splits a part of a step's time. The first of the parts that it returns is the bound.

// The time in which the processor computes, in a step of generation in which `traveled_bytes` of weights traveled.
[[nodiscard]] std::vector<StepPart> parts_of_reading(const StepLimits& limits, double processor_us,
                                                     double traveled_bytes);
// The time in which the GPU computes, in a step of a prompt.
[[nodiscard]] std::vector<StepPart> parts_of_arithmetic(const StepLimits& limits, double tokens, double gpu_us);
// The time in which weights travel, in a step of a prompt.
[[nodiscard]] std::vector<StepPart> parts_of_link(const StepLimits& limits, double weights_us, double traveled_bytes);
// Returns whether the GPU's arithmetic, rather than the link, sets the bound of a step of a prompt.
[[nodiscard]] bool is_bound_by_arithmetic(const StepLimits& limits, double tokens);

[[nodiscard]] Json to_json(const StepLimits& limits);
[[nodiscard]] std::string to_text(const StepLimits& limits);
void attach(trace::Recorder& recorder, const StepLimits& limits);
[[nodiscard]] std::optional<StepLimits> limits_in(const trace::Recording& recording);

}  // namespace shunt::cli
