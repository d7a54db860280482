// From floats to blocks: the encoders behind the quantize op and the quantizer of model files.
//
// The 16-bit types round to nearest even. Q8_0 scales by the largest element. Q4_0 and the K types search
// for the scales (and minima) that give the least squared error; in the K types an element weighs more the
// larger it is. Block formats: blocks.h. Elements that are not finite give some block, never a fault.
// Pure functions of their arguments; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shunt/tensor.h"

namespace shunt {

using RowEncoder = void (*)(const float* row, std::uint64_t elements, std::byte* out);

// Null for integer dtypes.
[[nodiscard]] RowEncoder encoder_of(DType dtype);

// REQUIRES: dtype is floating or quantized; elements is a whole number of blocks. `out` needs no alignment.
inline void encode_row(DType dtype, const float* row, std::uint64_t elements, std::byte* out) {
  encoder_of(dtype)(row, elements, out);
}

}  // namespace shunt
