// Whether numbers are finite where they are due. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "ops/op.h"

namespace shunt {

// Of the elements that lie wholly in these bytes of a contiguous tensor, which begin at `offset`, and were computed for
// these parameters. What has no floating elements is finite.
[[nodiscard]] bool are_finite(const Operand& operand, const Parameters& parameters, std::uint64_t offset,
                              std::span<const std::byte> bytes);

}  // namespace shunt
