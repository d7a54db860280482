// Makes the page table that describes operands to kernels (page_table_args.h). A pure function.
#pragma once

#include "ops/page_table_args.h"

namespace shunt {

struct Operand;

[[nodiscard]] PageTable page_table(const Operand& state, const Operand& positions, const Operand& sequences,
                                   const Operand& pages);

}  // namespace shunt
