// Chooses how many tokens a session can hold. A plain function; any thread.
#pragma once

#include <cstdint>

#include "models/model.h"
#include "shunt/model.h"
#include "shunt/runtime.h"

namespace shunt::models {

// Returns the context of a session with these options: the requested one or the default. Errors: invalid for options
// out of range; out_of_memory if it does not fit beside the weights.
[[nodiscard]] Result<std::uint32_t> choose_context(const Model& model, const Runtime& runtime,
                                                   const SessionOptions& options);

}  // namespace shunt::models
