// From a call of the family argsort to its arguments (argsort_args.h). A pure function, for the host.
#pragma once

#include "ops/argsort/argsort_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ArgsortArgs argsort_arguments(const OpCall& call);

}  // namespace shunt
