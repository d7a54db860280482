// One invocation computes one word of the result.
#include "ops/rotary/rotary.glsl"

#define Arguments RotaryArgs
#include "ops/kernel.glsl"

#include "ops/words.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, positions)
SHUNT_INPUT(5, factors)
SHUNT_INPUT(6, turns)

float element(uint index) {
  uint row = index / args.x.extents.w;
  uint i = index % args.x.extents.w;
  uint begin = row_offset(args.x.extents, args.x.strides, row);
  if (i >= args.dims) return x_element(args.x.dtype, byte_offset(1u), begin + i * args.x.strides.w);
  RotaryPair pair = pair_of(args, i);
  float first = x_element(args.x.dtype, byte_offset(1u), begin + pair.first * args.x.strides.w);
  float second = x_element(args.x.dtype, byte_offset(1u), begin + pair.second * args.x.strides.w);
  int position = positions_int(byte_offset(2u), row / args.x.extents.z * args.position_stride);
  uvec2 turn = uvec2(turns_word(2u * pair.number), turns_word(2u * pair.number + 1u));
  if (args.has_factors == 0u) return turned(pair, first, second, rotation(uint(position), turn));
  float factor = factors_element(F32, byte_offset(3u), pair.number * args.factor_stride);
  vec2 by = rotation(uint(position), divided(turn, factor));
  return turned(pair, first, second, vec2(by.x, factor < 0.0 ? -by.y : by.y));
}

void main() { store_word(args.x.dtype, valid_row_count(args.x) * args.x.extents.w); }
