// Builds the arguments of calls of the argsort family (argsort_args.h). A pure function, for the host.
#pragma once

#include "ops/argsort/argsort_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] ArgsortArgs argsort_arguments(const OpCall& call);

}  // namespace shunt
