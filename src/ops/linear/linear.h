// Builds the arguments of calls of the linear family (linear_args.h). Pure functions, for the host.
#pragma once

#include <string>

#include "ops/linear/linear_args.h"
#include "ops/op.h"

namespace shunt {

// Returns why no kernel of this family can run the call, or an empty string.
[[nodiscard]] std::string linear_refusal(const OpCall& call);
// Returns whether the call normalizes x before multiplying.
[[nodiscard]] bool normalizes(const OpCall& call);
// Returns why a kernel that does not normalize cannot run the call, or an empty string.
[[nodiscard]] std::string normalizes_refusal(const OpCall& call);
// REQUIRES: linear_refusal(call) is empty.
[[nodiscard]] LinearArgs linear_args(const OpCall& call);
// Returns the properties of weights in strips that kernels for few rows must know. REQUIRES: the dtype has strips.
[[nodiscard]] LinearStripShape strip_shape(DType dtype);

}  // namespace shunt
