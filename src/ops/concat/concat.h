// Builds the arguments of the concat kernels (concat_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/concat/concat_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ConcatArgs concat_arguments(const OpCall& call);

}  // namespace shunt
