// Generation: a prompt into a sequence of a session, and tokens out of it until something ends it.
#pragma once

#include <span>

#include "models/sampling.h"
#include "models/session.h"
#include "shunt/model.h"

namespace shunt::models {

// Appends `prompt` to the sequence and generates. The last generated token is not in the sequence yet.
// Errors: those of Session::append, Sampler::create and StopMatcher::create. A full context in the middle is no
// error here: the text so far is the result, with the reason context_full.
[[nodiscard]] Result<Generation> generate(Session& session, std::span<const Token> prompt,
                                          const GenerateOptions& options, const GenerateCallbacks& callbacks);

}  // namespace shunt::models
