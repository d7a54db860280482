// From a call of the family norm to its arguments (norm_args.h). Pure functions, for the host.
#pragma once

#include "ops/norm/norm_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] NormArgs norm_arguments(const OpCall& call);

}  // namespace shunt
