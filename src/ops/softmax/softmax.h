// From a call of the family softmax to its arguments (softmax_args.h). Pure functions, for the host.
#pragma once

#include "ops/softmax/softmax_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] SoftmaxArgs softmax_arguments(const OpCall& call);

}  // namespace shunt
