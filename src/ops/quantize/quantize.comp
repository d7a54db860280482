// Quantizes floats to Q8_0, bit for bit as encode32.cpp does. A workgroup writes two blocks: 17 words.
#include "ops/quantize/quantize_args.h"

#define Arguments QuantizeArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kFrom = 0u;

SHUNT_INPUT(3, x)

shared float magnitudes[kGroup];
shared uint quants[kGroup];
shared uint scales[2];

// Divisions in integer arithmetic, which gives the same bits on every device: x / 127 and 1 / scale. Non-finite numbers
// give an unspecified block.
float of_127(float x) {
  uint bits = floatBitsToUint(x);
  uint exponent = bits >> 23u;
  // Too small for any F16: anything but zero stays nonzero.
  if (exponent < 8u) return bits == 0u ? 0.0 : uintBitsToFloat(0x00800000u);
  uint mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  uint shift = (mantissa << 7u) / 127u < 0x1000000u ? 7u : 6u;
  uint quotient = (mantissa << shift) / 127u;
  if (((mantissa << shift) - quotient * 127u) * 2u > 127u) quotient += 1u;
  return uintBitsToFloat(((exponent - shift) << 23u) + (quotient - 0x800000u));
}
// The inverse of a positive F16; 0 for 0.
float inverse(uint scale) {
  if (scale == 0u) return 0.0;
  uint bits = floatBitsToUint(unpackHalf2x16(scale).x);
  uint mantissa = ((bits & 0x7FFFFFu) | 0x800000u) >> 13u;  // 11 bits; the rest is zero
  uint high = 0x1000000u / mantissa;
  uint rest = 0x1000000u % mantissa << 10u;
  uint quotient = (high << 10u) + rest / mantissa;  // 2^34 / mantissa
  if (rest % mantissa * 2u > mantissa) quotient += 1u;
  return uintBitsToFloat(((253u - (bits >> 23u)) << 23u) + (quotient - 0x800000u));
}
// Converts a scale to F16, away from zero where the steps between small numbers are coarse, as encode_search.h does.
uint f16_scale(float value) {
  uint bits = to_f16(value);
  return unpackHalf2x16(bits).x < value * (1.0 - 0.001953125) ? bits + 1u : bits;
}

// Byte `at` of the two blocks.
uint byte_of(uint at) {
  uint block = at / 34u;
  uint within = at % 34u;
  return within < 2u ? scales[block] >> (within * 8u) & 0xFFu : quants[block * 32u + within - 2u];
}

void main() {
  uint from = kFrom;
  uint lane = gl_LocalInvocationID.x;
  uint columns = args.x.extents.w;
  uint first = group_index() * kGroup;
  uint end = valid_row_count(args.x) * columns;
  uint index = min(first + lane, max(end, 1u) - 1u);
  float value = 0.0;
  if (end > 0u) {
    uint row = row_offset(args.x.extents, args.x.strides, index / columns);
    value = x_element(from, byte_offset(1u), row + index % columns);
  }
  magnitudes[lane] = abs(value);
  barrier();
  for (uint width = 16u; width > 0u; width /= 2u) {
    if (lane % 32u < width) magnitudes[lane] = max(magnitudes[lane], magnitudes[lane + width]);
    barrier();
  }
  uint scale = f16_scale(of_127(magnitudes[lane & 32u]));
  if (lane % 32u == 0u) scales[lane / 32u] = scale;
  quants[lane] = uint(int(roundEven(clamp(value * inverse(scale), -127.0, 127.0)))) & 0xFFu;
  barrier();
  // The second of the two blocks may not be valid; they share a word.
  uint bytes = first < end ? (min(end - first, kGroup) / 32u) * 34u : 0u;
  uint at = lane * 4u;
  if (at >= bytes) return;
  uint word = (byte_offset(0u) >> 2u) + group_index() * 17u + lane;
  uint low = byte_of(at) | byte_of(at + 1u) << 8u;
  if (at + 4u <= bytes)
    put_word(word, low | byte_of(at + 2u) << 16u | byte_of(at + 3u) << 24u);
  else
    put_word(word, low | (word_before(word) & 0xFFFF0000u));
}
