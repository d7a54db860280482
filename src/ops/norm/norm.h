// Builds the arguments of calls of the norm family (norm_args.h). Pure functions, for the host.
#pragma once

#include "ops/norm/norm_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] NormArgs norm_arguments(const OpCall& call);

}  // namespace shunt
