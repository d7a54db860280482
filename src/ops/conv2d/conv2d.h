// From a call of the family conv2d to its arguments (conv2d_args.h). Pure functions, for the host.
#pragma once

#include "ops/conv2d/conv2d_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] Conv2dArgs conv2d_arguments(const OpCall& call);

}  // namespace shunt
