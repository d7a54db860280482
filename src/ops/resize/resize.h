// Builds the arguments of the resize kernels (resize_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/resize/resize_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ResizeArgs resize_arguments(const OpCall& call);

}  // namespace shunt
