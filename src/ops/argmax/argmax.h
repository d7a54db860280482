// From a call of the family argmax to its arguments (argmax_args.h). Pure functions, for the host.
#pragma once

#include "ops/argmax/argmax_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ArgmaxArgs argmax_arguments(const OpCall& call);

}  // namespace shunt
