// Encoders of single blocks, one per block type, with 1, 32 or 256 elements to a block. The row encoders of encode.h
// are built on them.
//
// Pure functions; safe from any thread. Every byte of a block is written.
#pragma once

#include "ops/quantize/blocks.h"

namespace shunt::encoding {

#define SHUNT_ENCODE_floating(name) void encode(const float* x, name##Block& block);
#define SHUNT_ENCODE_quantized(name) void encode(const float* x, name##Block& block);
#define SHUNT_ENCODE_integer(name)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_ENCODE_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_ENCODE_floating
#undef SHUNT_ENCODE_quantized
#undef SHUNT_ENCODE_integer

}  // namespace shunt::encoding
