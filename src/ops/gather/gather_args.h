// Arguments of gather: row ids[i] of x, widened to F32. An id outside x is an error code, and its row is not
// written. Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/parameters.h"

namespace shunt {

struct GatherArgs {
  std::uint32_t rows = 0;  // of x
  std::uint32_t columns = 0;
  std::uint32_t strides[2] = {0, 0};  // of x, elements
  std::uint32_t dtype = 0;
  std::uint32_t ids = 0;  // rows of the result
  std::uint32_t id_stride = 0;
  std::uint32_t extent = 0;  // what counts the valid ids
};
static_assert(sizeof(GatherArgs) == 32);

// What the kernels return where an id is outside x.
inline constexpr int kGatherIdOutOfRange = 1;

}  // namespace shunt
