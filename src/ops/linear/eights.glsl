// How the fast kernels read a weight: eight elements of a row at a time as two or more words, and the matching elements
// of x. Needs kernel.glsl, SHUNT_INPUT x at binding 3 and SHUNT_WEIGHT weight.
layout(std430, binding = 3) readonly buffer x_vector_buffer { vec4 x_vectors[]; };

// Returns the columns where the two groups of four elements of a unit begin.
uvec2 columns_of(uint dtype, uint unit) {
  uint at = unit % 32u * 4u;
  uint block = unit / 32u * 256u;
  if (dtype == Q4_0 || dtype == Q4_1) return unit / 4u * 32u + unit % 4u * 4u + uvec2(0u, 16u);
  if (dtype == Q4_K || dtype == Q5_K) return block + at / 32u * 64u + at % 32u + uvec2(0u, 32u);
  if (dtype == Q6_K) return block + at / 64u * 128u + at % 64u + uvec2(0u, 64u);
  return unit * 8u + uvec2(0u, 4u);
}

// Eight elements of a weight row, as two groups of four.
struct Eight {
  vec4 a;
  vec4 b;
};
// The same before scaling, so that a sum of products is scaled only once.
struct ScaledEight {
  Eight quants;
  float scale;
};

// Returns the word at a byte offset, a multiple of 2. Both loads are unconditional, so they do not wait for the offset.
uint word_at(uint byte) {
  uint low = weight_word(byte >> 2u);
  uint high = weight_word(byte + 2u >> 2u);  // the same word, or the next
  return (byte & 2u) == 0u ? low : low >> 16u | high << 16u;
}
// Returns the two words at a byte offset, a multiple of 2.
uvec2 words_at(uint byte) {
  uint low = weight_word(byte >> 2u);
  uint mid = weight_word((byte >> 2u) + 1u);
  uint high = weight_word(byte + 6u >> 2u);  // the same word, or the next
  return (byte & 2u) == 0u ? uvec2(low, mid) : uvec2(low, mid) >> 16u | uvec2(mid, high) << 16u;
}

// Converts four bytes to float, minus `less`, by way of the bits of a float between 2^23 and 2^24: conversions are
// slow.
vec4 bytes_of(uint word, float less) {
  const uint bits = 0x4B000000u;
  uvec4 each = uvec4(word & 0xFFu, word >> 8u & 0xFFu, word >> 16u & 0xFFu, word >> 24u) | bits;
  return uintBitsToFloat(each) - (8388608.0 + less);
}
vec4 signed_bytes_of(uint word) { return bytes_of(word ^ 0x80808080u, 128.0); }
vec4 low_nibbles_of(uint word, float less) { return bytes_of(word & 0x0F0F0F0Fu, less); }
vec4 high_nibbles_of(uint word, float less) { return bytes_of(word >> 4u & 0x0F0F0F0Fu, less); }

// Blocks of 32. `unit` counts eights of a row. Q8_0 stores them in order, the other dtypes in the nibbles of a word.
ScaledEight eight_of_q8_0(uint row, uint unit) {
  uint block = row + unit / 4u * 34u;
  uvec2 words = words_at(block + 2u + unit % 4u * 8u);
  return ScaledEight(Eight(signed_bytes_of(words.x), signed_bytes_of(words.y)), weight_f16(block));
}
ScaledEight eight_of_q4_0(uint row, uint unit) {
  uint block = row + unit / 4u * 18u;
  uint word = word_at(block + 2u + unit % 4u * 4u);
  return ScaledEight(Eight(low_nibbles_of(word, 8.0), high_nibbles_of(word, 8.0)), weight_f16(block));
}
Eight eight_of_q4_1(uint row, uint unit) {
  uint block = row + unit / 4u * 20u;
  vec2 scales = unpackHalf2x16(word_at(block));
  uint word = word_at(block + 4u + unit % 4u * 4u);
  return Eight(scales.x * low_nibbles_of(word, 0.0) + scales.y, scales.x * high_nibbles_of(word, 0.0) + scales.y);
}

// Blocks of 256, whose words begin at multiples of at least 2 bytes. Returns the scale and the offset of group g.
vec2 scales_of_k(uint block, uint g) {
  vec2 scales = unpackHalf2x16(word_at(block));
  uint scale = weight_byte(block + 4u + g % 4u);
  uint least = weight_byte(block + 8u + g % 4u);
  uint low = weight_byte(block + 12u + g % 4u);
  scale = g < 4u ? scale & 63u : (low & 15u) | scale >> 6u << 4u;
  least = g < 4u ? least & 63u : low >> 4u | least >> 6u << 4u;
  return vec2(scales.x * float(scale), -scales.y * float(least));
}
Eight eight_of_q4_k(uint row, uint unit) {
  uint block = row + unit / 32u * 144u;
  uint at = unit % 32u * 4u;
  uint word = word_at(block + 16u + at);
  uint g = at / 32u * 2u;
  vec2 low = scales_of_k(block, g);
  vec2 high = scales_of_k(block, g + 1u);
  return Eight(low.x * low_nibbles_of(word, 0.0) + low.y, high.x * high_nibbles_of(word, 0.0) + high.y);
}
Eight eight_of_q5_k(uint row, uint unit) {
  uint block = row + unit / 32u * 176u;
  uint at = unit % 32u * 4u;
  uint word = word_at(block + 48u + at);
  uint fifth = word_at(block + 16u + at % 32u);
  uint g = at / 32u * 2u;
  uint low_bits = word & 0x0F0F0F0Fu | (fifth >> g & 0x01010101u) << 4u;
  uint high_bits = word >> 4u & 0x0F0F0F0Fu | (fifth >> (g + 1u) & 0x01010101u) << 4u;
  vec2 low = scales_of_k(block, g);
  vec2 high = scales_of_k(block, g + 1u);
  return Eight(low.x * bytes_of(low_bits, 0.0) + low.y, high.x * bytes_of(high_bits, 0.0) + high.y);
}
Eight eight_of_q6_k(uint row, uint unit) {
  uint block = row + unit / 32u * 210u;
  uint at = unit % 32u * 4u;
  uint word = word_at(block + at);
  uint shift = at % 64u / 32u * 2u;
  uint upper = word_at(block + 128u + at / 64u * 32u + at % 32u);
  uint low_bits = word & 0x0F0F0F0Fu | (upper >> shift & 0x03030303u) << 4u;
  uint high_bits = word >> 4u & 0x0F0F0F0Fu | (upper >> (shift + 4u) & 0x03030303u) << 4u;
  uint group = block + 192u + at / 64u * 8u + at % 64u / 16u;
  float scale = weight_f16(block + 208u);
  return Eight(scale * signed_byte(weight_byte(group)) * bytes_of(low_bits, 32.0),
               scale * signed_byte(weight_byte(group + 4u)) * bytes_of(high_bits, 32.0));
}

Eight eight_of_f16(uint row, uint unit) {
  uvec2 a = words_at(row + unit * 16u);
  uvec2 b = words_at(row + unit * 16u + 8u);
  return Eight(vec4(unpackHalf2x16(a.x), unpackHalf2x16(a.y)), vec4(unpackHalf2x16(b.x), unpackHalf2x16(b.y)));
}
Eight eight_of_any(uint dtype, uint row, uint unit) {
  Eight eight;
  for (uint i = 0u; i < 4u; ++i) {
    eight.a[i] = weight_of_row(dtype, row, unit * 8u + i);
    eight.b[i] = weight_of_row(dtype, row, unit * 8u + 4u + i);
  }
  return eight;
}
Eight eight_without_scale(uint dtype, uint row, uint unit) {
  if (dtype == Q4_1) return eight_of_q4_1(row, unit);
  if (dtype == Q4_K) return eight_of_q4_k(row, unit);
  if (dtype == Q5_K) return eight_of_q5_k(row, unit);
  if (dtype == Q6_K) return eight_of_q6_k(row, unit);
  if (dtype == F16) return eight_of_f16(row, unit);
  return eight_of_any(dtype, row, unit);
}
ScaledEight scaled_eight_of(uint dtype, uint row, uint unit) {
  if (dtype == Q8_0) return eight_of_q8_0(row, unit);
  if (dtype == Q4_0) return eight_of_q4_0(row, unit);
  return ScaledEight(eight_without_scale(dtype, row, unit), 1.0);
}
Eight eight_of(uint dtype, uint row, uint unit) {
  ScaledEight eight = scaled_eight_of(dtype, row, unit);
  return Eight(eight.scale * eight.quants.a, eight.scale * eight.quants.b);
}

// Returns four elements of x, `at` elements from its start. REQUIRES: `at` is a multiple of 4.
vec4 x_of(bool in_vectors, uint at) {
  if (in_vectors) return x_vectors[(byte_offset(1u) >> 4u) + (at >> 2u)];
  uint word = (byte_offset(1u) >> 2u) + at;
  return uintBitsToFloat(uvec4(x_word(word), x_word(word + 1u), x_word(word + 2u), x_word(word + 3u)));
}
