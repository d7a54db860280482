// Turns per position of a head's pairs, for kernels without 64-bit numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/rotary/rotary.h"

namespace shunt {

// Returns each pair's fraction of a full turn per position in units of 2^-64: its upper 32 bits, then its lower ones. A
// multiple of it modulo 2^64 is the angle at that position, to 1e-15 turns at positions below 2^20.
[[nodiscard]] std::vector<std::uint32_t> fixed_point_turns(const RotaryArgs& args);

}  // namespace shunt
