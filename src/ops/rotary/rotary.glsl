// Rotates pairs.
//
// A pair's turns per position are a fraction of a full turn in 64-bit fixed point, so that large positions lose no
// precision. Sine and cosine are computed here, because the built-in functions guarantee too little precision.
#include "ops/rotary/rotary_args.h"

// Returns the upper word of a product, computed from halves: umulExtended does not translate to WGSL.
uint upper_product(uint a, uint b) {
  uint low = (a & 0xFFFFu) * (b & 0xFFFFu);
  uint middle = (a >> 16u) * (b & 0xFFFFu) + (low >> 16u);
  uint other = (a & 0xFFFFu) * (b >> 16u) + (middle & 0xFFFFu);
  return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
}

// Returns `turn`, a fraction of a turn in 64-bit fixed point, divided by the absolute value of a factor. The factor is
// 24 bits times a power of two, so this is a long division by at most 8 bits at a time. The remainder is less than the
// divisor and fits with them into 32 bits. Whole turns of the quotient may be lost, since positions are whole numbers.
uvec2 divided(uvec2 turn, float factor) {
  uint bits = floatBitsToUint(factor) & 0x7FFFFFFFu;
  uint exponent = max(bits >> 23u, 1u);
  uint divisor = bits < 0x00800000u ? bits : (bits & 0x7FFFFFu) | 0x800000u;
  uvec2 quotient = uvec2(0u);
  uint rest = 0u;
  // The factor is divisor * 2^(exponent - 150), so the turn has 150 - exponent more bits, all zero (fewer if negative).
  uint end = 214u - min(exponent, 214u);
  for (uint bit = 0u; bit < end && divisor != 0u; bit += 8u) {
    uint count = min(end - bit, 8u);
    uint next = 0u;
    if (bit < 64u) next = (bit < 32u ? turn.x : turn.y) >> (24u - (bit & 31u)) & 0xFFu;
    rest = rest << count | next >> (8u - count);
    quotient.x = quotient.x << count | quotient.y >> (32u - count);
    quotient.y = quotient.y << count | rest / divisor;
    rest %= divisor;
  }
  return quotient;
}

// Returns the cosine and sine of position * turn full turns.
vec2 rotation(uint position, uvec2 turn) {
  uint turns = turn.x * position + upper_product(turn.y, position);
  uint quadrant = (turns + 0x20000000u) >> 30u;
  float x = float(int(turns - (quadrant << 30u))) * 1.4629180792671596e-9;  // 2 pi / 2^32
  float square = x * x;
  float sine =
      x * (1.0 + square * (-1.0 / 6.0 + square * (1.0 / 120.0 + square * (-1.0 / 5040.0 + square / 362880.0))));
  float cosine = 1.0 + square * (-0.5 + square * (1.0 / 24.0 + square * (-1.0 / 720.0 + square / 40320.0)));
  if (quadrant == 1u) return vec2(-sine, cosine);
  if (quadrant == 2u) return vec2(-cosine, -sine);
  if (quadrant == 3u) return vec2(sine, -cosine);
  return vec2(cosine, sine);
}

// The pair that element i of a head belongs to, its two elements, and whether i is the second.
struct RotaryPair {
  uint number;
  uint first;
  uint second;
  bool is_second;
};
RotaryPair pair_of(RotaryArgs rotary, uint i) {
  if (rotary.halves == 0u) return RotaryPair(i / 2u, i & ~1u, i | 1u, (i & 1u) != 0u);
  uint half_dims = rotary.dims / 2u;
  uint number = i % half_dims;
  return RotaryPair(number, number, number + half_dims, i >= half_dims);
}
float turned(RotaryPair pair, float first, float second, vec2 by) {
  return pair.is_second ? first * by.y + second * by.x : first * by.x - second * by.y;
}
