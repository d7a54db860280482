// What the CUDA kernels of several families ask of their operands, and how they split their work. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "ops/cuda.h"

namespace shunt {

// Empty, or why an input is not of a floating dtype.
[[nodiscard]] std::string floating_refusal(const OpCall& call, std::size_t input);
// Blocks whose threads write an element each.
[[nodiscard]] std::uint64_t blocks_for_elements(std::uint64_t elements);

}  // namespace shunt
