#include "plan/record.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt {

const CandidateRecord* DecisionRecord::find(std::string_view id) const {
  const auto found = std::ranges::find(candidates, id, &CandidateRecord::device);
  return found == candidates.end() ? nullptr : &*found;
}

std::uint32_t PlanRecord::rows_of(std::string_view input) const {
  const auto found = std::ranges::find(inputs, input, &InputRecord::name);
  return found == inputs.end() || found->shape.empty() ? 0 : found->shape.front();
}

std::string describe(const CandidateRecord& candidate) {
  std::string text = fmt::format("{}: {}", candidate.device, candidate.reason);
  if (!candidate.detail.empty()) text += fmt::format(" ({})", candidate.detail);
  if (candidate.has_prediction())
    text += fmt::format(", {:.1f} us = {:.1f} wait + {:.1f} transfer + {:.1f} compute, +- {:.1f}", candidate.total_us(),
                        candidate.wait_us, candidate.transfer_us, candidate.compute_us, candidate.uncertainty_us);
  return text;
}

}  // namespace shunt
