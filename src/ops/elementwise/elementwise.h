// From a call of the family elementwise to its arguments (elementwise_args.h). Pure functions, for the host.
#pragma once

#include "ops/elementwise/elementwise_args.h"
#include "ops/strided.h"

namespace shunt {

// Axes are merged where all operands allow it, so rows are long.
[[nodiscard]] ElementwiseArgs elementwise_arguments(const OpCall& call);

}  // namespace shunt
