// From a call of the family reduce to its arguments (reduce_args.h). Pure functions, for the host.
#pragma once

#include "ops/reduce/reduce_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ReduceArgs reduce_arguments(const OpCall& call);

}  // namespace shunt
