// One invocation computes one word of the result.
#include "ops/rotary/rotary.glsl"

#define Arguments RotaryArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, positions)
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
  uvec2 turn = uvec2(turns_words[2u * pair.number], turns_words[2u * pair.number + 1u]);
  return turned(pair, first, second, rotation(uint(position), turn));
}

void main() {
  uint end = valid_row_count(args.x) * args.x.extents.w;
  uint first = invocation_index() * per_word(args.x.dtype);
  if (first >= end) return;
  float second = is_half(args.x.dtype) && first + 1u < end ? element(first + 1u) : 0.0;
  store(args.x.dtype, first, end, vec2(element(first), second));
}
