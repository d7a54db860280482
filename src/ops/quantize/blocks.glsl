// Reads elements of rows of any floating or quantized dtype, in the blocks of ops/quantize/blocks.h. Included by
// ops/kernel.glsl. A kernel is specialized for its dtype, so only one of these loaders remains in it.

// A level of kCodebook (blocks.h).
float codebook_level(uint quant) {
  const uvec4 levels = uvec4(0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
  return float(int(levels[quant >> 2u] << (24u - (quant & 3u) * 8u)) >> 24);
}

// An element of MXFP4: half of the block's power of two, times twice a 4-bit float (mx_scale and kMxValues of
// blocks.h).
float mx_element(uint exponent, uint quant) {
  uint size = quant & 7u;
  float twice = float(size < 4u ? size : (2u | (size & 1u)) << (size / 2u - 1u));
  float scale = uintBitsToFloat(exponent < 2u ? 0x200000u << exponent : (exponent - 1u) << 23u);
  return (quant & 8u) != 0u ? -twice * scale : twice * scale;
}

// The value of a byte that holds a signed number.
float signed_byte(uint byte) { return float(int(byte << 24u) >> 24); }

// Loaders of blocks of 32 and of 256 elements. Each returns element `k` of the row that begins at byte `row`.
#define SHUNT_BLOCKS_OF_32(name)                                                                                 \
  uint name##_nibble(uint quants, uint k) { return name##_byte(quants + k % 16u) >> (k / 16u % 2u * 4u) & 15u; } \
  float name##_five_bits(uint high_bits, uint k) {                                                               \
    uint high = name##_byte(high_bits + k / 8u % 4u) >> k % 8u & 1u;                                             \
    return float(name##_nibble(high_bits + 4u, k) | high << 4u);                                                 \
  }                                                                                                              \
  float name##_q8_0(uint row, uint k) {                                                                          \
    uint block = row + k / 32u * 34u;                                                                            \
    return name##_f16(block) * signed_byte(name##_byte(block + 2u + k % 32u));                                   \
  }                                                                                                              \
  float name##_q4_0(uint row, uint k) {                                                                          \
    uint block = row + k / 32u * 18u;                                                                            \
    return name##_f16(block) * (float(name##_nibble(block + 2u, k)) - 8.0);                                      \
  }                                                                                                              \
  float name##_q4_1(uint row, uint k) {                                                                          \
    uint block = row + k / 32u * 20u;                                                                            \
    return name##_f16(block) * float(name##_nibble(block + 4u, k)) + name##_f16(block + 2u);                     \
  }                                                                                                              \
  float name##_q5_0(uint row, uint k) {                                                                          \
    uint block = row + k / 32u * 22u;                                                                            \
    return name##_f16(block) * (name##_five_bits(block + 2u, k) - 16.0);                                         \
  }                                                                                                              \
  float name##_q5_1(uint row, uint k) {                                                                          \
    uint block = row + k / 32u * 24u;                                                                            \
    return name##_f16(block) * name##_five_bits(block + 4u, k) + name##_f16(block + 2u);                         \
  }                                                                                                              \
  float name##_iq4_nl(uint row, uint k) {                                                                        \
    uint block = row + k / 32u * 18u;                                                                            \
    return name##_f16(block) * codebook_level(name##_nibble(block + 2u, k));                                     \
  }                                                                                                              \
  float name##_mxfp4(uint row, uint k) {                                                                         \
    uint block = row + k / 32u * 17u;                                                                            \
    return mx_element(name##_byte(block), name##_nibble(block + 1u, k));                                         \
  }

// name_k_element() is for Q4_K and Q5_K: it decodes `quant` of group g with the group's 6-bit scale and minimum
// (k_group in blocks.h).
#define SHUNT_BLOCKS_OF_256(name)                                                                              \
  float name##_k_element(uint block, uint g, uint quant) {                                                     \
    uint scale = name##_byte(block + 4u + g % 4u);                                                             \
    uint least = name##_byte(block + 8u + g % 4u);                                                             \
    uint low = name##_byte(block + 12u + g % 4u);                                                              \
    scale = g < 4u ? scale & 63u : (low & 15u) | scale >> 6u << 4u;                                            \
    least = g < 4u ? least & 63u : low >> 4u | least >> 6u << 4u;                                              \
    return name##_f16(block) * float(scale) * float(quant) - name##_f16(block + 2u) * float(least);            \
  }                                                                                                            \
  uint name##_k_nibble(uint quants, uint i) {                                                                  \
    return name##_byte(quants + i / 64u * 32u + i % 32u) >> (i / 32u % 2u * 4u) & 15u;                         \
  }                                                                                                            \
  uint name##_two_bits(uint quants, uint i) {                                                                  \
    return name##_byte(quants + i / 128u * 32u + i % 32u) >> (i / 32u % 4u * 2u) & 3u;                         \
  }                                                                                                            \
  float name##_q2_k(uint row, uint k) {                                                                        \
    uint block = row + k / 256u * 84u;                                                                         \
    uint both = name##_byte(block + k % 256u / 16u);                                                           \
    return name##_f16(block + 80u) * float(both & 15u) * float(name##_two_bits(block + 16u, k % 256u)) -       \
           name##_f16(block + 82u) * float(both >> 4u);                                                        \
  }                                                                                                            \
  float name##_q3_k(uint row, uint k) {                                                                        \
    uint block = row + k / 256u * 110u;                                                                        \
    uint i = k % 256u;                                                                                         \
    uint g = i / 16u;                                                                                          \
    uint low = name##_byte(block + 96u + g % 8u) >> (g / 8u * 4u) & 15u;                                       \
    uint scale = low | (name##_byte(block + 104u + g % 4u) >> (g / 4u * 2u) & 3u) << 4u;                       \
    uint quant = name##_two_bits(block + 32u, i) | (name##_byte(block + i % 32u) >> (i / 32u) & 1u) << 2u;     \
    return name##_f16(block + 108u) * (float(scale) - 32.0) * (float(quant) - 4.0);                            \
  }                                                                                                            \
  float name##_q4_k(uint row, uint k) {                                                                        \
    uint block = row + k / 256u * 144u;                                                                        \
    return name##_k_element(block, k % 256u / 32u, name##_k_nibble(block + 16u, k % 256u));                    \
  }                                                                                                            \
  float name##_q5_k(uint row, uint k) {                                                                        \
    uint block = row + k / 256u * 176u;                                                                        \
    uint g = k % 256u / 32u;                                                                                   \
    uint high = name##_byte(block + 16u + k % 32u) >> g & 1u;                                                  \
    return name##_k_element(block, g, name##_k_nibble(block + 48u, k % 256u) | high << 4u);                    \
  }                                                                                                            \
  float name##_q6_k(uint row, uint k) {                                                                        \
    uint block = row + k / 256u * 210u;                                                                        \
    uint i = k % 256u;                                                                                         \
    uint low = name##_byte(block + i / 128u * 64u + i % 64u) >> (i / 64u % 2u * 4u) & 15u;                     \
    uint quant = low | name##_two_bits(block + 128u, i) << 4u;                                                 \
    float scale = signed_byte(name##_byte(block + 192u + i / 16u));                                            \
    return name##_f16(block + 208u) * scale * (float(quant) - 32.0);                                           \
  }                                                                                                            \
  float name##_iq4_xs(uint row, uint k) {                                                                      \
    uint block = row + k / 256u * 136u;                                                                        \
    uint g = k % 256u / 32u;                                                                                   \
    uint low = name##_byte(block + 4u + g / 2u) >> (g % 2u * 4u) & 15u;                                        \
    uint scale = low | (name##_half(block + 2u) >> (2u * g) & 3u) << 4u;                                       \
    return name##_f16(block) * (float(scale) - 32.0) * codebook_level(name##_nibble(block + 8u + g * 16u, k)); \
  }

// Declares an input of any floating or quantized dtype.
#define SHUNT_WEIGHT(number, name) \
  SHUNT_WORDS(number, name)        \
  SHUNT_WEIGHT_ELEMENTS(name)
// The same if name_word() is already defined.
#define SHUNT_WEIGHT_ELEMENTS(name)                                                             \
  SHUNT_ELEMENTS(name)                                                                          \
  uint name##_byte(uint byte) { return name##_word(byte >> 2u) >> ((byte & 3u) * 8u) & 0xFFu; } \
  float name##_f16(uint byte) { return unpackHalf2x16(name##_half(byte)).x; }                   \
  SHUNT_BLOCKS_OF_32(name)                                                                      \
  SHUNT_BLOCKS_OF_256(name)                                                                     \
  float name##_of_row(uint dtype, uint row, uint k) {                                           \
    if (dtype == Q8_0) return name##_q8_0(row, k);                                              \
    if (dtype == Q4_0) return name##_q4_0(row, k);                                              \
    if (dtype == Q4_1) return name##_q4_1(row, k);                                              \
    if (dtype == Q5_0) return name##_q5_0(row, k);                                              \
    if (dtype == Q5_1) return name##_q5_1(row, k);                                              \
    if (dtype == Q2_K) return name##_q2_k(row, k);                                              \
    if (dtype == Q3_K) return name##_q3_k(row, k);                                              \
    if (dtype == Q4_K) return name##_q4_k(row, k);                                              \
    if (dtype == Q5_K) return name##_q5_k(row, k);                                              \
    if (dtype == Q6_K) return name##_q6_k(row, k);                                              \
    if (dtype == IQ4_NL) return name##_iq4_nl(row, k);                                          \
    if (dtype == IQ4_XS) return name##_iq4_xs(row, k);                                          \
    if (dtype == MXFP4) return name##_mxfp4(row, k);                                            \
    return name##_element(dtype, row, k);                                                       \
  }
