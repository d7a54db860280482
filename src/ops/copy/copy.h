// Arguments of copy: x of any strides -> contiguous, converted. Bits are kept where the dtype is; I32 from a
// floating dtype is cut towards zero, at most the largest of its sign, NaN becomes 0.
// Plain data, laid out as the shaders' uniform block.
#pragma once

#include <cstdint>
#include <string>

#include "ops/strided.h"

namespace shunt {

struct CopyArgs {
  StridedTensor x;
  std::uint32_t to = 0;  // the number of a DType
  std::uint32_t reserved[3] = {0, 0, 0};
};
static_assert(sizeof(CopyArgs) == 64);

// Axes are merged where x allows it, so rows are long.
[[nodiscard]] CopyArgs copy_arguments(const OpCall& call);
// Empty, or why the arguments cannot describe the call.
[[nodiscard]] std::string fits_copy_arguments(const OpCall& call);

}  // namespace shunt
