// One invocation computes one word of the result.
#include "ops/pool2d/pool2d_args.h"

#define Arguments Pool2dArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"
#include "ops/words.glsl"

SHUNT_INPUT(3, x)

// The first row or column of x under one position of the kernel, and the one past the last.
uvec2 covered(uint place, uint stride, uint kernel, uint before, uint extent) {
  uint begin = place * stride;
  return uvec2(begin < before ? 0u : begin - before, min(begin + kernel - before, extent));
}

float element(uint index) {
  uint row = index / args.places.y;
  uint plane = row / args.places.x;
  uvec2 rows = covered(row % args.places.x, args.stride.x, args.kernel.x, args.padding.x, args.x.extents.z);
  uvec2 columns = covered(index % args.places.y, args.stride.y, args.kernel.y, args.padding.y, args.x.extents.w);
  uint begin = plane / args.x.extents.y * args.x.strides.x + plane % args.x.extents.y * args.x.strides.y;
  float sum = 0.0;
  uint top = 0u;
  for (uint i = rows.x; i < rows.y; ++i)
    for (uint j = columns.x; j < columns.y; ++j) {
      float value = x_element(args.x.dtype, byte_offset(1u), begin + i * args.x.strides.z + j * args.x.strides.w);
      sum += value;
      top = max(top, order_of(value));
    }
  if (args.is_max != 0u) return value_of(top);
  return sum / float((rows.y - rows.x) * (columns.y - columns.x));
}

void main() {
  uint images = valid_rows(args.x.entries, args.x.extent);
  store_word(args.x.dtype, images * args.x.extents.y * args.places.x * args.places.y);
}
