// The results of a step for the tokens that want logits: all logits, or only the best ones, which takes less time.
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "models/decoder/architecture.h"
#include "models/sampling.h"
#include "run/executable.h"

namespace shunt::models {

class StepResults {
 public:
  enum class Kind : std::uint8_t { logits, candidates };

  explicit StepResults(std::uint32_t vocabulary) : vocabulary_(vocabulary) {}

  // Reads the results of a step that has `outputs` rows of them. Errors: the device's.
  [[nodiscard]] Status read(const Executable& executable, std::uint32_t outputs, Kind kind);
  [[nodiscard]] bool are_finite() const;

  // F32 [vocabulary], valid until the next read; empty if none were read.
  [[nodiscard]] std::span<const float> logits(std::size_t index) const;
  // Best first, as many as candidate_count(), valid until the next read; empty if none were read.
  [[nodiscard]] std::span<const ScoredToken> candidates(std::size_t index) const;
  [[nodiscard]] std::uint32_t candidate_count() const { return std::min(kCandidates, vocabulary_); }

 private:
  std::uint32_t vocabulary_;
  std::vector<float> logits_;
  std::vector<ScoredToken> candidates_;
};

}  // namespace shunt::models
