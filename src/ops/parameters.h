// The small block of numbers that changes from step to step, and how kernels read it. Plain data: this
// header is shared by C++, CUDA and (field by field) by the shaders' uniform block.
//
// A program is prepared for a bucket of rows; a submission fills only some of them. A tensor whose axis 0
// is such a bucket names the field that says how many of its rows are valid; kernels leave the rest alone.
#pragma once

#include <cstdint>

namespace shunt {

// Which field of Parameters counts the valid entries of a tensor's axis 0.
enum class Extent : std::uint32_t { fixed = 0, tokens = 1, outputs = 2 };

struct Parameters {
  std::uint32_t tokens = 0;   // valid tokens of this step
  std::uint32_t outputs = 0;  // valid rows of the result
  // No token of this step sees a position at or above it; 0: not known. Kernels whose loops must have bounds that all
  // invocations know (WGSL) take it for one.
  std::uint32_t positions = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Parameters) == 16);

constexpr std::uint32_t valid_rows(std::uint32_t capacity, Extent extent, const Parameters& parameters) {
  if (extent == Extent::fixed) return capacity;
  const std::uint32_t valid = extent == Extent::tokens ? parameters.tokens : parameters.outputs;
  return valid < capacity ? valid : capacity;
}

}  // namespace shunt
