// A workgroup finds the largest element of one row.
#include "ops/argmax/argmax_args.h"

#define Arguments ArgmaxArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"

SHUNT_INPUT(3, x)

const uint kNone = 0xFFFFFFFFu;
shared float largest[kGroup];
shared uint places[kGroup];

bool beats(float value, uint place, float other, uint its) {
  if (place == kNone) return false;
  return its == kNone || value > other || (value == other && place < its);
}

void main() {
  uint row = group_index();
  bool live = row < valid_row_count(args.x);
  uint lane = gl_LocalInvocationID.x;
  uint begin = row_offset(args.x.extents, args.x.strides, row);
  float best = 0.0;
  uint place = kNone;
  for (uint column = lane; live && column < args.x.extents.w; column += kGroup) {
    float value = x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w);
    if (is_number(value) && beats(value, column, best, place)) {
      best = value;
      place = column;
    }
  }
  largest[lane] = best;
  places[lane] = place;
  barrier();
  for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
    if (lane < width && beats(largest[lane + width], places[lane + width], largest[lane], places[lane])) {
      largest[lane] = largest[lane + width];
      places[lane] = places[lane + width];
    }
    barrier();
  }
  if (live && lane == 0u) output_words[(byte_offset(0u) >> 2u) + row] = places[0] == kNone ? 0u : places[0];
}
