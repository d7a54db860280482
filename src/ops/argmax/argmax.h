// Builds the arguments of calls of the argmax family (argmax_args.h). Pure functions, for the host.
#pragma once

#include "ops/argmax/argmax_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ArgmaxArgs argmax_arguments(const OpCall& call);

}  // namespace shunt
