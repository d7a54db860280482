// Arguments of every elementwise row: what each kernel needs to know about its operands and attributes.
// Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block (arrays are uvec4 and vec4 there).
#pragma once

#include <cstdint>

#include "ops/strided_args.h"

namespace shunt {

inline constexpr std::uint32_t kMaxElementwiseOperands = 8;

struct ElementwiseArgs {
  StridedTensor x;       // operand 0; the contiguous result has its extents and dtype
  std::uint32_t op = 0;  // the number of an Op
  std::uint32_t operands = 0;
  std::uint32_t reserved[2] = {0, 0};
  std::uint32_t strides[kMaxElementwiseOperands][4]{};  // elements; 0 where an operand is broadcast
  std::uint32_t dtypes[kMaxElementwiseOperands]{};
  float attributes[kMaxElementwiseOperands]{};  // in the order of the row
};
static_assert(sizeof(ElementwiseArgs) == 256);

}  // namespace shunt
