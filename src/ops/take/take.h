// Builds the arguments of calls of the take family (take_args.h). Pure functions, for the host.
#pragma once

#include "ops/strided.h"
#include "ops/take/take_args.h"

namespace shunt {

[[nodiscard]] TakeArgs take_arguments(const OpCall& call);

}  // namespace shunt
