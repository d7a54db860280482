// How a model judges a given text: the best successors of its tokens, and how likely its own were.
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

}  // namespace shunt::models
