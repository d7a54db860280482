// Builds the arguments of the pool2d kernels (pool2d_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/pool2d/pool2d_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] Pool2dArgs pool2d_arguments(const OpCall& call);

}  // namespace shunt
