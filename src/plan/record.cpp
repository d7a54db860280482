#include "plan/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace shunt {

const CandidateRecord* DecisionRecord::find(std::string_view id) const {
  const auto found = std::ranges::find(candidates, id, &CandidateRecord::device);
  return found == candidates.end() ? nullptr : &*found;
}

std::uint32_t PlanRecord::rows_of(std::string_view input) const {
  std::uint32_t rows = 0;
  for (const InputRecord& each : inputs) {
    const bool is_piece = each.name.starts_with(input) && each.name.substr(input.size()).starts_with('.');
    if ((each.name == input || is_piece) && !each.shape.empty()) rows += each.shape.front();
  }
  return rows;
}

std::string kernel_in_words(const std::string& kernel, bool is_measured) {
  return kernel.empty() ? "" : fmt::format(" by {} ({})", kernel, is_measured ? "measured" : "by rule");
}

std::string describe(const CandidateRecord& candidate) {
  std::string text = fmt::format("{}: {}", candidate.device, candidate.reason);
  if (!candidate.detail.empty()) text += fmt::format(" ({})", candidate.detail);
  if (candidate.added_us && *candidate.added_us != 0)
    text += fmt::format(": the whole would take {} {}", in_time(std::abs(*candidate.added_us)),
                        *candidate.added_us > 0 ? "longer" : "less");
  if (candidate.compute_us > 0)
    text += fmt::format("; the op alone {} +- {}", in_time(candidate.compute_us), in_time(candidate.uncertainty_us));
  if (candidate.arithmetic != "f32") text += fmt::format(", in {}", candidate.arithmetic);
  if (!candidate.kernel.empty()) text += "," + kernel_in_words(candidate.kernel, candidate.kernel_measured);
  if (candidate.compute_us > 0 && !candidate.measured) text += ", not measured";
  return text;
}

}  // namespace shunt
