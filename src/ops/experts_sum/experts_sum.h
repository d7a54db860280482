// Builds the arguments of calls of the experts_sum family (experts_sum_args.h), and what its CPU kernels share. Pure
// functions, for the host.
#pragma once

#include <span>

#include "ops/experts_sum/experts_sum_args.h"
#include "ops/kernel.h"
#include "ops/op.h"

namespace shunt {

[[nodiscard]] ExpertsSumArgs experts_sum_arguments(const OpCall& call);

// Writes the shares of a token's experts, all zero if all scores are minus infinity.
void write_shares(const ExpertsSumArgs& args, const CpuCall& call, std::uint64_t token, std::span<double> shares);

}  // namespace shunt
