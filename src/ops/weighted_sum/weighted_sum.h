// Builds the arguments of calls of the weighted_sum family (weighted_sum_args.h). Pure functions, for the host.
#pragma once

#include "ops/strided.h"
#include "ops/weighted_sum/weighted_sum_args.h"

namespace shunt {

[[nodiscard]] WeightedSumArgs weighted_sum_arguments(const OpCall& call);

}  // namespace shunt
