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

void decode(const Q4_1Block& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min = f16_to_f32(block.min);
  for (std::size_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>(block.quants[j] & 15) + min;
    out[j + 16] = scale * static_cast<float>(block.quants[j] >> 4) + min;
  }
}

// The quant of element j of a block of Q5_0 or Q5_1.
template <class Block>
int five_bits(const Block& block, std::size_t j) {
  const int low = (block.quants[j % 16] >> (j / 16 * 4)) & 15;
  return low | ((block.high_bits[j / 8] >> (j % 8)) & 1) << 4;
}

void decode(const Q5_0Block& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t j = 0; j < 32; ++j) out[j] = scale * static_cast<float>(five_bits(block, j) - 16);
}

void decode(const Q5_1Block& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min = f16_to_f32(block.min);
  for (std::size_t j = 0; j < 32; ++j) out[j] = scale * static_cast<float>(five_bits(block, j)) + min;
}

void decode(const Q8_0Block& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t j = 0; j < 32; ++j) out[j] = scale * static_cast<float>(block.quants[j]);
}

// The low two bits of element i of a block of Q2_K or Q3_K.
template <class Block>
int two_bits(const Block& block, std::size_t i) {
  return (block.quants[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3;
}

void decode(const Q2_KBlock& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min = f16_to_f32(block.min);
  for (std::size_t i = 0; i < 256; ++i) {
    const int both = block.group_scales[i / 16];
    const float group_min = min * static_cast<float>(both >> 4);
    out[i] = scale * static_cast<float>(both & 15) * static_cast<float>(two_bits(block, i)) - group_min;
  }
}

void decode(const Q3_KBlock& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t i = 0; i < 256; ++i) {
    const float group_scale = scale * static_cast<float>(q3_group_scale(block.group_scales, i / 16) - 32);
    const int high = (block.high_bits[i % 32] >> (i / 32)) & 1;
    out[i] = group_scale * static_cast<float>((two_bits(block, i) | high << 2) - 4);
  }
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

// Decodes 32 elements with a table of levels.
void decode_levels(const std::int8_t (&levels)[16], float scale, const std::uint8_t* quants, float* out) {
  for (std::size_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>(levels[quants[j] & 15]);
    out[j + 16] = scale * static_cast<float>(levels[quants[j] >> 4]);
  }
}

void decode(const IQ4_NLBlock& block, float* out) {
  decode_levels(kCodebook, f16_to_f32(block.scale), block.quants, out);
}

void decode(const IQ4_XSBlock& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (std::size_t group = 0; group < 8; ++group)
    decode_levels(kCodebook, scale * static_cast<float>(iq4_group_scale(block, group) - 32), block.quants + 16 * group,
                  out + 32 * group);
}

void decode(const MXFP4Block& block, float* out) {
  decode_levels(kMxValues, mx_scale(block.exponent), block.quants, out);
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
