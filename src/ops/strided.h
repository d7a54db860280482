// Describes operands to kernels as the plain data of strided_args.h. Pure functions, for the host.
#pragma once

#include <cstdint>
#include <string>

#include "ops/strided_args.h"

namespace shunt {

struct Operand;
struct OpCall;

// Describes a tensor. A bucket of rank 1 becomes a column: each entry is a row of one element.
// REQUIRES: fits_arguments(call) is empty for the call that has this operand.
[[nodiscard]] StridedTensor strided(const Operand& operand);
// Describes `operand` with the extents of `whole`, whose last axes it equals; a missing axis has stride 0.
[[nodiscard]] StridedTensor strided_like(const Operand& operand, const Operand& whole);

// Merges neighbouring axes over which all tensors step evenly, so that rows become as long as possible. There are
// `operands` tensors, with the extents of `whole`. A bucket axis stays separate. The result of a kernel is contiguous,
// so it always merges.
void merge_axes(StridedTensor& whole, std::uint32_t (*strides)[4], std::uint32_t operands);

// Returns an empty string, or why the operands cannot be described: a stride that does not fit 32 bits, or a
// result that is not contiguous.
[[nodiscard]] std::string fits_arguments(const OpCall& call);
// The same for kernels that work on whole rows of input 0, which must not be a bucket of single elements.
[[nodiscard]] std::string fits_row_arguments(const OpCall& call);

}  // namespace shunt
