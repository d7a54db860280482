// From a call of the family linear to its arguments (linear_args.h). Pure functions, for the host.
#pragma once

#include <string>

#include "ops/linear/linear_args.h"
#include "ops/op.h"

namespace shunt {

// Why no kernel of this family can run the call; empty where all can.
[[nodiscard]] std::string linear_refusal(const OpCall& call);
// Whether x is normalized before it is multiplied.
[[nodiscard]] bool normalizes(const OpCall& call);
// Empty, or why a kernel that does not do so cannot run the call.
[[nodiscard]] std::string normalizes_refusal(const OpCall& call);
// REQUIRES: linear_refusal(call) is empty.
[[nodiscard]] LinearArgs linear_args(const OpCall& call);

}  // namespace shunt
