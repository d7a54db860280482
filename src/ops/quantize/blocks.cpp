#include "ops/quantize/blocks.h"

#include <cstring>

namespace shunt {
namespace {

void decode(const F32Block& block, float* out) { *out = block.value; }
void decode(const F16Block& block, float* out) { *out = f16_to_f32(block.bits); }
void decode(const BF16Block& block, float* out) { *out = bf16_to_f32(block.bits); }

void decode(const Q4_0Block& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>((block.quants[j] & 15) - 8);
    out[j + 16] = scale * static_cast<float>((block.quants[j] >> 4) - 8);
  }
}

void decode(const Q8_0Block& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t j = 0; j < 32; ++j) out[j] = scale * static_cast<float>(block.quants[j]);
}

// `quant(group, l)` is the unsigned quant of element l of a group.
template <class Block, class Quant>
void decode_k_groups(const Block& block, float* out, Quant quant) {
  const float scale = f16_to_f32(block.scale);
  const float min = f16_to_f32(block.min);
  for (std::size_t group = 0; group < 8; ++group) {
    const KGroup k = k_group(block.group_scales, group);
    const float group_scale = scale * static_cast<float>(k.scale);
    const float group_min = min * static_cast<float>(k.min);
    for (std::size_t l = 0; l < 32; ++l)
      out[32 * group + l] = group_scale * static_cast<float>(quant(group, l)) - group_min;
  }
}

void decode(const Q4_KBlock& block, float* out) {
  decode_k_groups(block, out, [&](std::size_t group, std::size_t l) {
    return (block.quants[32 * (group / 2) + l] >> (group % 2 * 4)) & 15;
  });
}

void decode(const Q5_KBlock& block, float* out) {
  decode_k_groups(block, out, [&](std::size_t group, std::size_t l) {
    const int low = (block.quants[32 * (group / 2) + l] >> (group % 2 * 4)) & 15;
    return low | (((block.high_bits[l] >> group) & 1) << 4);
  });
}

void decode(const Q6_KBlock& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < 128; ++i) {
      const int low = (block.low_bits[64 * half + i % 64] >> (i / 64 * 4)) & 15;
      const int high = (block.high_bits[32 * half + i % 32] >> (i / 32 * 2)) & 3;
      const float group_scale = scale * static_cast<float>(block.group_scales[8 * half + i / 16]);
      out[128 * half + i] = group_scale * static_cast<float>((low | (high << 4)) - 32);
    }
  }
}

template <class Block, std::uint32_t kElements>
void decode_blocks(const std::byte* row, std::uint64_t elements, float* out) {
  for (std::uint64_t i = 0; i < elements; i += kElements, row += sizeof(Block)) {
    Block block;
    std::memcpy(&block, row, sizeof(Block));
    decode(block, out + i);
  }
}

#define SHUNT_DECODER_floating(name, block_elements) decode_blocks<name##Block, block_elements>
#define SHUNT_DECODER_quantized(name, block_elements) decode_blocks<name##Block, block_elements>
#define SHUNT_DECODER_integer(name, block_elements) nullptr
constexpr RowDecoder kDecoders[] = {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_DECODER_##kind(name, block_elements),
#include "ops/dtypes.def"
};
#undef SHUNT_DECODER_floating
#undef SHUNT_DECODER_quantized
#undef SHUNT_DECODER_integer

}  // namespace

RowDecoder decoder_of(DType dtype) { return kDecoders[static_cast<std::size_t>(dtype)]; }

}  // namespace shunt
