// Builds the arguments of the elementwise kernels (elementwise_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/elementwise/elementwise_args.h"
#include "ops/strided.h"

namespace shunt {

// Merges axes where the strides of all operands allow it, so that rows are long.
[[nodiscard]] ElementwiseArgs elementwise_arguments(const OpCall& call);

}  // namespace shunt
