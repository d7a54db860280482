// Builds the arguments of calls of the cache family (cache_args.h). Pure functions, for the host.
#pragma once

#include "ops/cache/cache_args.h"
#include "ops/page_table.h"
#include "ops/rotary/rotary.h"

namespace shunt {

// REQUIRES: a call of the family, or of rotary.
[[nodiscard]] CacheArgs cache_arguments(const OpCall& call);

}  // namespace shunt
