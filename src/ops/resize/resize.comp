// One invocation computes one word of the result.
#include "ops/resize/resize_args.h"

#define Arguments ResizeArgs
#include "ops/kernel.glsl"

#include "ops/words.glsl"

SHUNT_INPUT(3, x)

// Two neighbouring rows or columns of x, and the weight of the second.
struct Between {
  uint first;
  uint second;
  float share;
};

// Maps row or column `place` of `size` to the `extent` of x. Its position in x is numerator / (2 size).
Between place_of(uint place, uint size, uint extent) {
  uint doubled = (2u * place + 1u) * extent;  // numerator + size
  uint last = extent - 1u;
  if (args.is_linear == 0u) {
    // Rounds halves down: the ceiling of the position minus a half, at least 0.
    uint above = max(doubled, 2u * size) - 2u * size;
    uint nearest = min((above + 2u * size - 1u) / (2u * size), last);
    return Between(nearest, nearest, 0.0);
  }
  if (doubled <= size) return Between(0u, 0u, 0.0);
  uint first = (doubled - size) / (2u * size);
  float share = float((doubled - size) % (2u * size)) / float(2u * size);
  return Between(min(first, last), min(first + 1u, last), share);
}

float mixed(float a, float b, float share) { return share == 0.0 ? a : a + (b - a) * share; }

float pixel(uint begin, uint row, uint column) {
  return x_element(args.x.dtype, byte_offset(1u), begin + row * args.x.strides.z + column * args.x.strides.w);
}

float element(uint index) {
  uint row = index / args.size.y;
  uint plane = row / args.size.x;
  uint begin = plane / args.x.extents.y * args.x.strides.x + plane % args.x.extents.y * args.x.strides.y;
  Between y = place_of(row % args.size.x, args.size.x, args.x.extents.z);
  Between x = place_of(index % args.size.y, args.size.y, args.x.extents.w);
  if (args.is_linear == 0u) return pixel(begin, y.first, x.first);
  float above = mixed(pixel(begin, y.first, x.first), pixel(begin, y.first, x.second), x.share);
  float below = mixed(pixel(begin, y.second, x.first), pixel(begin, y.second, x.second), x.share);
  return mixed(above, below, y.share);
}

void main() {
  uint images = valid_rows(args.x.entries, args.x.extent);
  store_word(args.x.dtype, images * args.x.extents.y * args.size.x * args.size.y);
}
