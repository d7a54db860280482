// Arguments of softmax: exp(scale x + mask) / sum, per row; the mask is broadcast along missing leading axes.
// A row whose scores are all -infinity becomes zeros. Plain data, laid out as the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/strided.h"

namespace shunt {

struct SoftmaxArgs {
  StridedTensor x;  // the contiguous result has its extents and dtype
  std::uint32_t mask_strides[4] = {0, 0, 0, 0};
  std::uint32_t has_mask = 0;
  std::uint32_t mask_dtype = 0;
  float scale = 1;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(SoftmaxArgs) == 80);

[[nodiscard]] SoftmaxArgs softmax_arguments(const OpCall& call);

}  // namespace shunt
