#include "models/step_results.h"

#include <cmath>

#include "run/finite.h"

namespace shunt::models {

Status StepResults::read(const Executable& executable, std::uint32_t outputs, Kind kind) {
  logits_.clear();
  candidates_.clear();
  if (kind == Kind::logits) {
    logits_.resize(std::size_t{outputs} * vocabulary_);
    return executable.read_output(0, 0, std::as_writable_bytes(std::span(logits_)));
  }
  std::vector<float> pairs(std::size_t{2} * outputs * candidate_count());
  SHUNT_TRY(executable.read_output(1, 0, std::as_writable_bytes(std::span(pairs))));
  const auto vocabulary = static_cast<float>(vocabulary_);
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const bool exists = pairs[i + 1] >= 0 && pairs[i + 1] < vocabulary;
    candidates_.push_back({.token = exists ? static_cast<Token>(pairs[i + 1]) : -1, .logit = pairs[i]});
  }
  return {};
}

// Candidates begin with what is not a number, if there is any among the logits. What is no token is -1.
bool StepResults::are_finite() const {
  const auto is_possible = [](const ScoredToken& candidate) {
    return std::isfinite(candidate.logit) && candidate.token >= 0;
  };
  return shunt::are_finite(logits_) && std::ranges::all_of(candidates_, is_possible);
}

std::span<const float> StepResults::logits(std::size_t index) const {
  if (index >= logits_.size() / vocabulary_) return {};
  return std::span(logits_).subspan(index * vocabulary_, vocabulary_);
}

std::span<const ScoredToken> StepResults::candidates(std::size_t index) const {
  if (index >= candidates_.size() / candidate_count()) return {};
  return std::span(candidates_).subspan(index * candidate_count(), candidate_count());
}

}  // namespace shunt::models
