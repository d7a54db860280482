// From a call of the family weighted_sum to its arguments (weighted_sum_args.h). Pure functions, for the host.
#pragma once

#include "ops/strided.h"
#include "ops/weighted_sum/weighted_sum_args.h"

namespace shunt {

[[nodiscard]] WeightedSumArgs weighted_sum_arguments(const OpCall& call);

}  // namespace shunt
