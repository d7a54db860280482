// Faults in a chosen phase of a session's work, drawn from a seed, and the audits that a run made.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>

#include "models/reference.h"
#include "run/opened_devices.h"
#include "trace/recorder.h"

namespace shunt::models {

inline constexpr std::uint32_t kGenerated = 12;  // tokens of a text

// How many ops of a device run before the prompt has been read, and how many per token after that.
struct Work {
  std::size_t prompt = 0;
  std::size_t token = 0;
};

enum class Phase : std::uint8_t { load, plan, transfer, prompt, generation };
inline constexpr Phase kPhases[] = {Phase::load, Phase::plan, Phase::transfer, Phase::prompt, Phase::generation};
inline constexpr const char* kOpFaults[] = {"lost", "hang", "error", "nonfinite"};

inline std::string fault_in(Phase phase, const Work& work, std::mt19937& random) {
  const auto below = [&](std::size_t count) { return random() % std::max<std::size_t>(count, 1); };
  const char* const op_fault = kOpFaults[below(std::size(kOpFaults))];
  const char* const fault = below(2) == 0 ? "lost" : "error";
  switch (phase) {
    case Phase::load:
      return below(2) == 0 ? fmt::format("oom after {} allocations", below(8))
                           : fmt::format("{} at transfer {}", fault, below(8));
    case Phase::plan:
      return fmt::format("{} at program {}", fault, below(3));
    case Phase::transfer:
      return fmt::format("{} at transfer {}", fault, 8 + below(60));
    case Phase::prompt:
      return fmt::format("{} at op {}", op_fault, below(work.prompt));
    case Phase::generation:
      return fmt::format("{} at op {}", op_fault, work.prompt + below(work.token * (kGenerated - 1)));
  }
  return "";
}

inline std::size_t audits_of(const Loaded& loaded, bool failed) {
  return static_cast<std::size_t>(std::ranges::count_if(
      opened(*loaded.runtime).recorder().snapshot(),
      [&](const trace::ExecutionEvent& event) { return event.kind == trace::Kind::audit && event.failed == failed; }));
}

}  // namespace shunt::models
