// Makes the page table that describes operands to kernels (page_table_args.h), and measures the state that it
// addresses. Pure functions.
#pragma once

#include <cstdint>

#include "ops/page_table_args.h"
#include "shunt/tensor.h"

namespace shunt {

struct Operand;

// Returns the bytes of a head of one position in the state. REQUIRES: it is a whole number of blocks.
[[nodiscard]] std::uint64_t cached_head_bytes(DType dtype, std::uint32_t head_dim);

[[nodiscard]] PageTable page_table(const Operand& state, const Operand& positions, const Operand& sequences,
                                   const Operand& pages);

}  // namespace shunt
