// Evaluates a model on a given text: the best next tokens, the likelihood of the text, and whether devices agree.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/session.h"

namespace shunt::models {

struct EvaluateOptions {
  std::size_t top = 10;     // how many next tokens to report
  bool every = false;       // for every token, not only for the last
  bool perplexity = false;  // compute mean_nll
  // Called before each step with the number of tokens done; returning false ends the evaluation.
  std::function<bool(std::size_t done)> progress;
};

struct Evaluation {
  std::vector<Token> tokens;
  std::vector<std::vector<ScoredToken>> tops;  // best first; for each token, or only for the last
  // Mean negative log likelihood of all tokens but the first; its exponential is the perplexity.
  std::optional<double> mean_nll;
};

// Rows of logits per step if all are wanted, for SessionOptions::max_batch_tokens. With a vocabulary of 128k tokens
// they take 32 MiB.
inline constexpr std::uint32_t kEvaluatedRowsPerStep = 64;

// Runs the tokens through sequence 0, which must be empty. Errors: invalid for no tokens, for fewer than two if the
// perplexity is wanted, and for more than the context holds; interrupted if `progress` returned false; those of
// Session::decode.
[[nodiscard]] Result<Evaluation> evaluate(Session& session, std::span<const Token> tokens,
                                          const EvaluateOptions& options);

// Returns the KL divergence, in nats, of the distribution that softmax makes of `logits` from the one that it makes of
// `exact`: the sum of p log(p / q), where p is exact. NaN for logits that are not finite. REQUIRES: as many of both.
[[nodiscard]] double kl_divergence(std::span<const float> exact, std::span<const float> logits);

// How close a session's results are to those of a reference session on the same tokens.
struct Agreement {
  Numerics numerics = Numerics::exact;  // of the session
  std::size_t tokens = 0;
  double nmse = 0;            // sum of squared differences of all logits, divided by the sum of the reference's squares
  double mean_kl = 0;         // of the next token from the reference's, as kl_divergence()
  double largest_kl = 0;      // the same, of one token
  std::size_t same_best = 0;  // tokens with the same best next token in both
  std::size_t decided = 0;    // tokens whose two best next tokens differ by more than kDecidedMargin in the reference
  std::size_t same = 0;       // of these, those with the same best next token in both
  // Mean negative log likelihoods, in nats; empty for a single token.
  std::optional<double> mean_nll;
  std::optional<double> exact_mean_nll;

  // Returns by which share the perplexity differs from the reference's.
  [[nodiscard]] double perplexity_change() const;
  // True if the session's numerics allow all this: bounds_of(), and for exact ones the same best token where decided.
  [[nodiscard]] bool ok() const;

  static constexpr float kDecidedMargin = 0.2F;
};

struct CompareOptions {
  std::size_t alone = 4;  // how many of the last tokens to run one by one, as in generation; the rest is a prompt
  std::function<bool(std::size_t done)> progress;  // as in EvaluateOptions
};

// Runs the tokens through sequence 0 of both sessions, which must be empty. `exact` is the reference, and should have
// exact numerics. Errors: invalid if the models' vocabularies differ in size; those of evaluate().
[[nodiscard]] Result<Agreement> compare(Session& session, Session& exact, std::span<const Token> tokens,
                                        const CompareOptions& options);

}  // namespace shunt::models
