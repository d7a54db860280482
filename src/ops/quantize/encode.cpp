#include "ops/quantize/encode.h"

#include <cstring>

#include "ops/quantize/blocks.h"
#include "ops/quantize/encode_blocks.h"

namespace shunt {

namespace encoding {

void encode(const float* x, F32Block& block) { block.value = *x; }
void encode(const float* x, F16Block& block) { block.bits = f32_to_f16(*x); }
void encode(const float* x, BF16Block& block) { block.bits = f32_to_bf16(*x); }

}  // namespace encoding

namespace {

template <class Block, std::uint32_t kElements>
void encode_blocks(const float* row, std::uint64_t elements, std::byte* out) {
  for (std::uint64_t i = 0; i < elements; i += kElements, out += sizeof(Block)) {
    Block block;
    encoding::encode(row + i, block);
    std::memcpy(out, &block, sizeof(Block));
  }
}

#define SHUNT_ENCODER_floating(name, block_elements) encode_blocks<name##Block, block_elements>
#define SHUNT_ENCODER_quantized(name, block_elements) encode_blocks<name##Block, block_elements>
#define SHUNT_ENCODER_integer(name, block_elements) nullptr
constexpr RowEncoder kEncoders[] = {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_ENCODER_##kind(name, block_elements),
#include "ops/dtypes.def"
};
#undef SHUNT_ENCODER_floating
#undef SHUNT_ENCODER_quantized
#undef SHUNT_ENCODER_integer

}  // namespace

RowEncoder encoder_of(DType dtype) { return kEncoders[static_cast<std::size_t>(dtype)]; }

}  // namespace shunt
