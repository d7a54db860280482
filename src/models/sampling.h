// Chooses the next token from logits, greedily or at random; the same seed gives the same choices.
//
// The filters apply in this order: repetition penalty, top-k, top-p, min-p, temperature. Top-p and min-p use the
// probabilities before the temperature. The random generator is our own, so a seed means the same on every platform. A
// Sampler serves one sequence and one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shunt/model.h"

namespace shunt::models {

// Errors: invalid; the message names the option, its value and the possible values.
[[nodiscard]] Status validate(const SamplingOptions& options);

// Sebastiano Vigna's splitmix64 (public domain; "Fast splittable pseudorandom number generators", 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Uniform in [0, 1), with 53 random bits.
  double next_unit();

 private:
  std::uint64_t state_;
};

struct ScoredToken {
  Token token = 0;
  float logit = 0;
};

class Sampler {
 public:
  [[nodiscard]] static Result<Sampler> create(const SamplingOptions& options);

  // Returns how many of the best of `vocabulary` tokens are enough to choose one; 0: all are needed.
  [[nodiscard]] std::uint32_t needed(std::uint32_t vocabulary) const;

  // Returns the next token, an index into `logits`. `history` holds all tokens so far, oldest first. Of equal logits
  // the first wins. NaN never wins; if every logit is NaN or -infinity, the first -infinity wins. Each call that is not
  // greedy draws exactly one random number. Errors: invalid if no logit is a number.
  [[nodiscard]] Result<std::int32_t> sample(std::span<const float> logits, std::span<const std::int32_t> history);
  // The same, of the tokens with the best logits, best first. REQUIRES: they are needed() or more, and none is NaN.
  [[nodiscard]] Result<std::int32_t> sample(std::span<const ScoredToken> best, std::span<const std::int32_t> history);

  [[nodiscard]] const SamplingOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    std::int32_t token;
    double weight;
  };

  explicit Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {}
  [[nodiscard]] bool is_greedy() const { return options_.greedy || options_.temperature == 0; }
  [[nodiscard]] std::size_t most() const;
  // Chooses among the candidates. `logits`: how many there were.
  [[nodiscard]] Result<std::int32_t> choose(std::size_t logits);
  void note_recent(std::span<const std::int32_t> history);
  [[nodiscard]] float penalized(float logit) const;
  // Sets the candidates to the best `most` logits, best first, or to all in their order.
  void collect(std::span<const float> logits, std::span<const std::int32_t> history, std::size_t most);
  // Considers those from `begin` to `end` - 1. Once one was dropped, the candidates are a heap, the worst in front.
  void collect_from(std::span<const float> logits, std::size_t begin, std::size_t end, std::size_t most);
  void consider(float logit, std::int32_t token, std::size_t most);
  void keep_probable(float best);
  [[nodiscard]] std::int32_t draw(double unit);

  SamplingOptions options_;
  SplitMix64 random_;
  std::vector<Candidate> candidates_;  // scratch memory, as are the others
  bool has_dropped_ = false;
  std::vector<std::int32_t> recent_;
};

}  // namespace shunt::models
