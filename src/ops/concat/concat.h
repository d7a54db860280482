// From a call of the family concat to its arguments (concat_args.h). Pure functions, for the host.
#pragma once

#include "ops/concat/concat_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ConcatArgs concat_arguments(const OpCall& call);

}  // namespace shunt
