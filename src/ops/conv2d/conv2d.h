// Builds the arguments of the conv2d kernels (conv2d_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/conv2d/conv2d_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] Conv2dArgs conv2d_arguments(const OpCall& call);

}  // namespace shunt
