// Builds the arguments of the copy kernels (copy_args.h) from a call. Pure functions; host only.
#pragma once

#include "ops/copy/copy_args.h"
#include "ops/strided.h"

namespace shunt {

// Merges axes where the strides of x allow it, so that rows are long.
[[nodiscard]] CopyArgs copy_arguments(const OpCall& call);

// Returns the number of four-word pieces, rounded up, if x is copied unchanged; else 0.
[[nodiscard]] std::uint64_t whole_fours(const OpCall& call);

}  // namespace shunt
