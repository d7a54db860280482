// The small block of numbers that changes between steps, and how kernels read it; for C++, CUDA and GLSL.
//
// A program is prepared for a bucket of rows; a submission fills only some of them. A tensor whose axis 0
// is such a bucket names the field that counts its valid rows; kernels leave the others alone.
#pragma once

#include "ops/args.h"

SHUNT_ARGS(Parameters) {
  SHUNT_U32(tokens);   // valid tokens of this step
  SHUNT_U32(outputs);  // valid rows of the result
  // Tokens of this step see only positions below it; 0: unknown. Kernels whose loops need uniform bounds (WGSL) use it
  // as one.
  SHUNT_U32(positions);
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(Parameters, 16)

#ifndef SHUNT_GLSL
namespace shunt {

// The field of Parameters that counts the valid entries of a tensor's axis 0.
enum class Extent : std::uint32_t { fixed = 0, tokens = 1, outputs = 2 };

constexpr std::uint32_t valid_rows(std::uint32_t capacity, Extent extent, const Parameters& parameters) {
  if (extent == Extent::fixed) return capacity;
  const std::uint32_t valid = extent == Extent::tokens ? parameters.tokens : parameters.outputs;
  return valid < capacity ? valid : capacity;
}

}  // namespace shunt
#endif
