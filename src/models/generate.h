// Generation: a prompt into a sequence of a session, and tokens out of it until something ends it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/sampling.h"
#include "models/session.h"

namespace shunt::models {

struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // 0: until the end token or a full context
  SamplingOptions sampling;
  std::vector<std::string> stops;  // text that ends generation and is not given out
  bool ignore_end = false;         // go on after end tokens
  std::uint32_t sequence = 0;
};

enum class StopReason : std::uint8_t { end_token, stop_string, length, context_full, interrupted };
[[nodiscard]] std::string_view name_of(StopReason reason);

struct GenerateCallbacks {
  // New text, cut at whole characters, as soon as it cannot be the beginning of a stop string.
  std::function<void(std::string_view text)> on_text;
  // Prompt tokens done and all of them, after each step of the prompt.
  std::function<void(std::size_t done, std::size_t total)> on_prompt;
  // Set (by a signal handler, say) to end after the current step.
  const std::atomic<bool>* interrupted = nullptr;
};

struct Generation {
  std::vector<Token> tokens;  // generated, without the end token
  std::string text;
  StopReason stop = StopReason::length;
  std::uint32_t prompt_tokens = 0;
  double prompt_s = 0;      // until the first logits
  double generate_s = 0;    // from there on
  std::uint32_t steps = 0;  // of generation: tokens computed one by one
};

// Appends `prompt` to the sequence and generates. The last generated token is not in the sequence yet.
// Errors: those of Session::append, Sampler::create and StopMatcher::create. A full context in the middle is no
// error here: the text so far is the result, with the reason context_full.
[[nodiscard]] Result<Generation> generate(Session& session, std::span<const Token> prompt,
                                          const GenerateOptions& options, const GenerateCallbacks& callbacks);

}  // namespace shunt::models
