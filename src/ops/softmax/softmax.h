// Builds the arguments of calls of the softmax family (softmax_args.h). Pure functions, for the host.
#pragma once

#include "ops/softmax/softmax_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] SoftmaxArgs softmax_arguments(const OpCall& call);

}  // namespace shunt
