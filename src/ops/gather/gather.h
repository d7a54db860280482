// Builds the arguments of calls of the gather family (gather_args.h). Pure functions, for the host.
#pragma once

#include <string>

#include "ops/gather/gather_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] GatherArgs gather_arguments(const OpCall& call);
// Returns why the arguments cannot describe the call, or an empty string.
[[nodiscard]] std::string fits_gather_arguments(const OpCall& call);

}  // namespace shunt
