// Builds the arguments of calls of the top_k family (top_k_args.h). Pure functions, for the host.
#pragma once

#include "ops/strided.h"
#include "ops/top_k/top_k_args.h"

namespace shunt {

[[nodiscard]] TopKArgs top_k_arguments(const OpCall& call);

}  // namespace shunt
