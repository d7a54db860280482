// How a model judges a given text: the best successors of its tokens, how likely its own were, and whether devices
// agree.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/session.h"

namespace shunt::models {

struct Scored {
  Token id = 0;
  float logit = 0;
};

struct EvaluateOptions {
  std::size_t top = 10;     // how many successors of each token
  bool every = false;       // of every token, not only of the last
  bool perplexity = false;  // find mean_nll
  // Called before each step with the tokens that are done; false ends the evaluation.
  std::function<bool(std::size_t done)> progress;
};

struct Evaluation {
  std::vector<Token> tokens;
  std::vector<std::vector<Scored>> tops;  // best first; of each token, or of the last one only
  // Mean negative log likelihood of the tokens after the first; its exponential is the perplexity.
  std::optional<double> mean_nll;
};

// Rows of logits of one step where all are wanted: with a vocabulary of 128k tokens 32 MiB. What
// SessionOptions::batch should be then.
inline constexpr std::uint32_t kEvaluatedRowsPerStep = 64;

// Runs the tokens through an empty sequence 0. Errors: invalid for no tokens, fewer than two where the perplexity is
// wanted, more than the context holds, and where `progress` ended it; those of Session::decode.
[[nodiscard]] Result<Evaluation> evaluate(Session& session, std::span<const Token> tokens,
                                          const EvaluateOptions& options);

// How near the logits of a session are to those of another one along the same tokens.
struct Agreement {
  std::size_t tokens = 0;
  double nmse = 0;          // the sum of the squared differences of all logits over that of the squares of the other's
  std::size_t decided = 0;  // tokens whose two best successors are more than kDecidedMargin apart in the other session
  std::size_t same = 0;     // of these, those with the same best successor in both
  // What two devices that compute the same model right may differ by.
  [[nodiscard]] bool ok() const { return nmse <= kMostNmse && same == decided; }

  static constexpr double kMostNmse = 1e-4;
  static constexpr float kDecidedMargin = 0.2F;
};

struct CompareOptions {
  std::size_t alone = 4;  // of the tokens, the last that are read one by one as in generation; the others are a prompt
  std::function<bool(std::size_t done)> progress;  // as in EvaluateOptions
};

// Runs the tokens through empty sequences 0 of both. `exact` is the one that is held to be right. Errors: invalid for
// sessions of models with other vocabularies; those of evaluate().
[[nodiscard]] Result<Agreement> compare(Session& session, Session& exact, std::span<const Token> tokens,
                                        const CompareOptions& options);

}  // namespace shunt::models
