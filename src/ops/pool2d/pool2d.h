// Builds the arguments of the pool2d kernels (pool2d_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/kernel.h"
#include "ops/pool2d/pool2d_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] Pool2dArgs pool2d_arguments(const OpCall& call);
// Returns the rows (axis 0) or columns (axis 1) of x under one position of the kernel.
[[nodiscard]] Range pool_range(const Pool2dArgs& args, std::size_t axis, std::uint64_t place);

}  // namespace shunt
