// Encodes floats as blocks, for the quantize op and the quantizer of model files.
//
// The 16-bit types round to nearest even. Q8_0 scales by the largest element. The other types search for the scales
// (and minima) that give the least squared error; in 256-element blocks larger elements weigh more. Block formats:
// blocks.h. Non-finite elements give an unspecified block, never a fault; the scale of one of Q8_0 is NaN then, so that
// they show in what is computed from a cache.
// Pure functions of their arguments; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shunt/tensor.h"

namespace shunt {

using RowEncoder = void (*)(const float* row, std::uint64_t elements, std::byte* out);

// Returns null for integer dtypes.
[[nodiscard]] RowEncoder encoder_of(DType dtype);

// REQUIRES: dtype is floating or quantized; elements is a whole number of blocks. `out` needs no alignment.
inline void encode_row(DType dtype, const float* row, std::uint64_t elements, std::byte* out) {
  encoder_of(dtype)(row, elements, out);
}

}  // namespace shunt
