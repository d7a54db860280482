// Builds the arguments of the reduce kernels (reduce_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/reduce/reduce_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ReduceArgs reduce_arguments(const OpCall& call);

}  // namespace shunt
