// Choosing the next token from logits: greedily or at random, always the same for the same seed.
//
// The filters work one after the other: repetition penalty, top-k, top-p, min-p, temperature (top-p and min-p look at
// the probabilities before the temperature). The generator is our own, so a seed means the same on every
// platform. A Sampler serves one sequence and one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shunt/status.h"

namespace shunt::models {

struct SamplingOptions {
  float temperature = 0.8F;        // >= 0; divides the logits; 0 is greedy
  std::uint32_t top_k = 40;        // only the k best tokens; 0: all
  float top_p = 0.95F;             // (0, 1]; only the fewest best tokens that together have this probability; 1: all
  float min_p = 0.05F;             // [0, 1]; only tokens at least this times as likely as the best; 0: all
  float repeat_penalty = 1.0F;     // > 0; divides positive and multiplies negative logits of recent tokens; 1: off
  std::uint32_t repeat_last = 64;  // how many tokens count as recent; 0: none
  std::uint64_t seed = 0;
  bool greedy = false;  // the best token after the penalty; everything else above is ignored
};

// Errors: invalid, naming the option, its value and what is possible.
[[nodiscard]] Status validate(const SamplingOptions& options);

// Sebastiano Vigna's splitmix64 (public domain; "Fast splittable pseudorandom number generators", 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Uniform in [0, 1), 53 bits.
  double next_unit();

 private:
  std::uint64_t state_;
};

class Sampler {
 public:
  [[nodiscard]] static Result<Sampler> create(const SamplingOptions& options);

  // The next token, an index into `logits`; `history` is all tokens so far, oldest first. Of equal logits the first
  // counts as better. NaN never wins; where every logit is NaN or -infinity the first of the latter is
  // chosen, else 0. Each call that is not greedy draws exactly one random number. REQUIRES: !logits.empty().
  [[nodiscard]] std::int32_t sample(std::span<const float> logits, std::span<const std::int32_t> history);

  [[nodiscard]] const SamplingOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    std::int32_t token;
    double weight;
  };

  explicit Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {}
  void collect(std::span<const float> logits, std::span<const std::int32_t> history);
  void keep_top_k();
  void keep_probable(float best);
  [[nodiscard]] std::int32_t draw(double unit);

  SamplingOptions options_;
  SplitMix64 random_;
  std::vector<Candidate> candidates_;  // working memory; the rest too
  std::vector<std::int32_t> recent_;
};

}  // namespace shunt::models
