// Arguments of rms_norm and rms_norm_mul: x / sqrt(mean(x^2) + epsilon), per row, times a weight that is
// broadcast along missing leading axes. Plain data, shared by C++, CUDA and (field by field) the shaders' uniform
// block.
#pragma once

#include <cstdint>

#include "ops/strided_args.h"

namespace shunt {

struct NormArgs {
  StridedTensor x;  // the contiguous result has its extents and dtype
  std::uint32_t weight_strides[4] = {0, 0, 0, 0};
  std::uint32_t has_weight = 0;
  std::uint32_t weight_dtype = 0;
  float epsilon = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(NormArgs) == 80);

}  // namespace shunt
