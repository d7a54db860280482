// From a call of the family pool2d to its arguments (pool2d_args.h). Pure functions, for the host.
#pragma once

#include "ops/kernel.h"
#include "ops/pool2d/pool2d_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] Pool2dArgs pool2d_arguments(const OpCall& call);
// The rows (axis 0) or columns (axis 1) of x that one place of the kernel covers.
[[nodiscard]] Range pool_range(const Pool2dArgs& args, std::size_t axis, std::uint64_t place);

}  // namespace shunt
