// Builds the arguments of calls of the attention family (attention_args.h). Pure functions, for the host.
#pragma once

#include <string>

#include "ops/attention/attention_args.h"
#include "ops/page_table.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] AttentionArgs attention_arguments(const OpCall& call);
// Returns the most positions that a token may see.
[[nodiscard]] std::uint64_t visible_at_most(const OpCall& call);
// Returns why the arguments cannot describe the call, or an empty string.
[[nodiscard]] std::string fits_attention_arguments(const OpCall& call);

}  // namespace shunt
