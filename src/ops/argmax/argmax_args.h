// Arguments of argmax: per row of x the first index of the largest element, as I32. NaN never wins; a row of
// nothing but NaN answers 0. Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/strided_args.h"

namespace shunt {

struct ArgmaxArgs {
  StridedTensor x;
};
static_assert(sizeof(ArgmaxArgs) == 48);

}  // namespace shunt
