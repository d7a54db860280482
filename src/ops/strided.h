// From operands to the plain data of strided_args.h that describes them to kernels. Pure functions, for the host.
#pragma once

#include <cstdint>
#include <string>

#include "ops/strided_args.h"

namespace shunt {

struct Operand;
struct OpCall;

// A tensor of rank 1 that is a bucket becomes a column: each entry is a row of one element.
// REQUIRES: fits_arguments(call) is empty for the call that has this operand.
[[nodiscard]] StridedTensor strided(const Operand& operand);
// `operand` seen with the extents of `whole`, whose last axes it equals; a missing axis has stride 0.
[[nodiscard]] StridedTensor strided_like(const Operand& operand, const Operand& whole);

// Merges neighbouring axes that all `operands` tensors with the extents of `whole` step over evenly, so that
// rows become as long as they can be. A bucket axis stays on its own. The result of a kernel is contiguous and
// merges always.
void merge_axes(StridedTensor& whole, std::uint32_t (*strides)[4], std::uint32_t operands);

// Empty, or why the operands cannot be described: a stride that does not fit 32 bits, or a result that is not
// contiguous.
[[nodiscard]] std::string fits_arguments(const OpCall& call);
// The same for kernels that work on whole rows of input 0: these must not be a bucket of single elements.
[[nodiscard]] std::string fits_row_arguments(const OpCall& call);

}  // namespace shunt
