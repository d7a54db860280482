// From a call of the family gather to its arguments (gather_args.h). Pure functions, for the host.
#pragma once

#include <string>

#include "ops/gather/gather_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] GatherArgs gather_arguments(const OpCall& call);
// Empty, or why the arguments cannot describe the call.
[[nodiscard]] std::string fits_gather_arguments(const OpCall& call);

}  // namespace shunt
