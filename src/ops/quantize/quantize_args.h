// Arguments of quantize (floats -> blocks) and dequantize (blocks -> floats): rows of x are contiguous, and so is the
// result, in another dtype.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(QuantizeArgs) {
  StridedTensor x;  // strides count elements, even for quantized dtypes
  SHUNT_U32(to);    // the number of a DType
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(QuantizeArgs, 64)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns how many elements a block of threads of the CUDA kernel quantizes together: whole blocks of the result.
constexpr std::uint32_t quantize_tile(std::uint32_t block_elements) {
  constexpr std::uint32_t kLeast = 64;
  return block_elements < kLeast ? kLeast : block_elements;
}

}  // namespace shunt
#endif
