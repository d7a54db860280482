// Arguments of gather: row ids[i] of x, widened to F32. An id outside x gives an error code, and its row is not
// written.
#pragma once

#include "ops/parameters.h"

SHUNT_ARGS(GatherArgs) {
  SHUNT_U32(rows);  // of x
  SHUNT_U32(columns);
  SHUNT_U32S(2, strides);  // of x, in elements
  SHUNT_U32(dtype);
  SHUNT_U32(ids);  // rows of the result
  SHUNT_U32(id_stride);
  SHUNT_U32(extent);  // value of an Extent: what counts the valid ids
};
SHUNT_ARGS_BYTES(GatherArgs, 32)

#ifndef SHUNT_GLSL
namespace shunt {

// Returned by kernels if an id is outside x.
inline constexpr int kGatherIdOutOfRange = 1;

}  // namespace shunt
#endif
