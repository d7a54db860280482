// Chooses how many tokens a session can hold. A plain function; any thread.
#pragma once

#include <cstdint>

#include "models/model.h"
#include "shunt/model.h"
#include "shunt/runtime.h"

namespace shunt::models {

// The most tokens of a step, and how many one has if neither the user nor the devices ask for something else.
inline constexpr std::uint32_t kMostStepTokens = 4096;
inline constexpr std::uint32_t kUsualStepTokens = 512;
// Returns how many tokens of a prompt every session with these options can read in one step.
[[nodiscard]] constexpr std::uint32_t usual_step(const SessionOptions& options) {
  return options.max_batch_tokens != 0 ? options.max_batch_tokens : kUsualStepTokens;
}

// Returns the context of a session with these options: the requested one or the default. Errors: invalid for options
// out of range; out_of_memory if it does not fit beside the weights.
[[nodiscard]] Result<std::uint32_t> choose_context(const Model& model, const Runtime& runtime,
                                                   const SessionOptions& options);

}  // namespace shunt::models
