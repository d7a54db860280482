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

// How close a session's logits are to those of a reference session on the same tokens.
struct Agreement {
  std::size_t tokens = 0;
  double nmse = 0;          // sum of squared differences of all logits, divided by the sum of the reference's squares
  std::size_t decided = 0;  // tokens whose two best next tokens differ by more than kDecidedMargin in the reference
  std::size_t same = 0;     // of these, those with the same best next token in both
  // True if two devices that both compute the model correctly may differ this much.
  [[nodiscard]] bool ok() const { return nmse <= kMostNmse && same == decided; }

  static constexpr double kMostNmse = 1e-4;
  static constexpr float kDecidedMargin = 0.2F;
};

struct CompareOptions {
  std::size_t alone = 4;  // how many of the last tokens to run one by one, as in generation; the rest is a prompt
  std::function<bool(std::size_t done)> progress;  // as in EvaluateOptions
};

// Runs the tokens through sequence 0 of both sessions, which must be empty. `exact` is the reference. Errors: invalid
// if the models' vocabularies differ in size; those of evaluate().
[[nodiscard]] Result<Agreement> compare(Session& session, Session& exact, std::span<const Token> tokens,
                                        const CompareOptions& options);

}  // namespace shunt::models
