// From a call of the family copy to its arguments (copy_args.h). Pure functions, for the host.
#pragma once

#include "ops/copy/copy_args.h"
#include "ops/strided.h"

namespace shunt {

// Axes are merged where x allows it, so rows are long.
[[nodiscard]] CopyArgs copy_arguments(const OpCall& call);

// How many times four words are copied as they are; 0 where x is not.
[[nodiscard]] std::uint64_t whole_fours(const OpCall& call);

}  // namespace shunt
