// One invocation writes one word of the result.
#include "ops/concat/concat_args.h"

#define Arguments ConcatArgs
#include "ops/kernel.glsl"

#include "ops/bits.glsl"

SHUNT_BITS(3, a)
SHUNT_BITS(4, b)

// An extent of the result: a's or, on the axis of concatenation, the sum of both.
uint extent_of_result(uint axis, uint of_a, uint of_b) { return axis == args.axis ? of_a + of_b : of_a; }
uint height() { return extent_of_result(1u, args.a.extents.y, args.b.extents.y); }
uint depth() { return extent_of_result(2u, args.a.extents.z, args.b.extents.z); }
uint columns() { return extent_of_result(3u, args.a.extents.w, args.b.extents.w); }

uint result_bits(uint index) {
  uint w = index % columns();
  uint row = index / columns();
  uint z = row % depth();
  uint y = row / depth() % height();
  uint x = row / depth() / height();
  uint along = args.axis == 0u ? x : args.axis == 1u ? y : args.axis == 2u ? z : w;
  uvec4 of_a = args.a.extents;
  uint first = args.axis == 0u ? of_a.x : args.axis == 1u ? of_a.y : args.axis == 2u ? of_a.z : of_a.w;
  if (along < first) {
    uvec4 strides = args.a.strides;
    return a_bits(args.a.dtype, byte_offset(1u), x * strides.x + y * strides.y + z * strides.z + w * strides.w);
  }
  uvec4 strides = args.b.strides;
  uint shift = first * (args.axis == 0u   ? strides.x
                        : args.axis == 1u ? strides.y
                        : args.axis == 2u ? strides.z
                                          : strides.w);
  return b_bits(args.b.dtype, byte_offset(2u), x * strides.x + y * strides.y + z * strides.z + w * strides.w - shift);
}

void main() {
  uint end = extent_of_result(0u, args.a.extents.x, args.b.extents.x) * height() * depth() * columns();
  // A bucket is never the axis of concatenation.
  if (args.a.extent != 0u && args.a.entries != 0u)
    end = end / args.a.entries * valid_rows(args.a.entries, args.a.extent);
  store_word_of_bits(args.a.dtype, end);
}
