// Choosing the next token from logits: greedily or at random, always the same for the same seed.
//
// The filters work one after the other: repetition penalty, top-k, top-p, min-p, temperature (top-p and min-p look at
// the probabilities before the temperature). The generator is our own, so a seed means the same on every
// platform. A Sampler serves one sequence and one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shunt/model.h"

namespace shunt::models {

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
  // chosen. Each call that is not greedy draws exactly one random number. Errors: invalid where no logit is a number.
  [[nodiscard]] Result<std::int32_t> sample(std::span<const float> logits, std::span<const std::int32_t> history);

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
