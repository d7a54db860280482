// Arguments of argmax: per row of x the first index of the largest element, as I32. NaN never wins; a row of
// nothing but NaN answers 0. Plain data, laid out as the shaders' uniform block.
#pragma once

#include "ops/strided.h"

namespace shunt {

struct ArgmaxArgs {
  StridedTensor x;
};
static_assert(sizeof(ArgmaxArgs) == 48);

[[nodiscard]] ArgmaxArgs argmax_arguments(const OpCall& call);

}  // namespace shunt
