// Arguments of copy: x of any strides -> contiguous, converted. Bits are kept where the dtype is; I32 from a
// floating dtype is cut towards zero, at most the largest of its sign, NaN becomes 0.
// Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/strided_args.h"

namespace shunt {

struct CopyArgs {
  StridedTensor x;
  std::uint32_t to = 0;  // the number of a DType
  std::uint32_t reserved[3] = {0, 0, 0};
};
static_assert(sizeof(CopyArgs) == 64);

}  // namespace shunt
