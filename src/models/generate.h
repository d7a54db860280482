// Text generation: runs a prompt through a sequence of a session, then samples tokens until something ends it.
#pragma once

#include <span>

#include "models/sampling.h"
#include "models/session.h"
#include "shunt/model.h"

namespace shunt::models {

// Appends `prompt` to the sequence and generates tokens. The last generated token is not in the sequence yet. Errors:
// those of Session::prefill, Sampler::create and StopMatcher::create. A context that fills up during generation is no
// error: the result is the text so far, with the reason context_full.
[[nodiscard]] Result<Generation> generate(Session& session, std::span<const Token> prompt,
                                          const GenerateOptions& options, const GenerateCallbacks& callbacks);

}  // namespace shunt::models
