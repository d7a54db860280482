// Checks that numbers are finite. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "ops/op.h"

namespace shunt {

// Checks the elements wholly inside these bytes of a contiguous tensor, which begin at `offset` and were computed for
// these parameters. A tensor without floating-point elements is finite.
[[nodiscard]] bool are_finite(const Operand& operand, const Parameters& parameters, std::uint64_t offset,
                              std::span<const std::byte> bytes);

// The same of plain numbers.
[[nodiscard]] bool are_finite(std::span<const float> numbers);

}  // namespace shunt
