// Builds the arguments of calls of the experts family (experts_args.h). Pure functions, for the host.
#pragma once

#include <string>

#include "ops/experts/experts_args.h"
#include "ops/op.h"

namespace shunt {

// Returns why no kernel of this family can run the call, or an empty string.
[[nodiscard]] std::string experts_refusal(const OpCall& call);
// Returns why a kernel that only multiplies x by one weight cannot run the call, or an empty string.
[[nodiscard]] std::string up_refusal(const OpCall& call);
// REQUIRES: experts_refusal(call) is empty.
[[nodiscard]] ExpertsArgs experts_arguments(const OpCall& call);

}  // namespace shunt
