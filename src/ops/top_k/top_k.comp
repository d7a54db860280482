// A workgroup finds the places of one row, one after the other. Each is the first among the best remaining columns of
// all invocations.
#include "ops/top_k/top_k_args.h"

#define Arguments TopKArgs
#include "ops/kernel.glsl"

#include "ops/top_k/order.glsl"

SHUNT_INPUT(3, x)

const uint kNone = 0xFFFFFFFFu;
shared uint orders[kGroup];
shared uint places[kGroup];
// Results alternate between the two elements, because OpenGL drivers move reads from before a barrier to after it.
shared uint found_orders[2];
shared uint found_places[2];

// Writes place `number` of the result, which is `column` of the row that begins there.
void put_place(uint number, uint begin, uint column) {
  uint word = (byte_offset(0u) >> 2u) + number * (1u + args.with_values);
  if (args.with_values == 0u) {
    put_word(word, column);
    return;
  }
  float value = x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w);
  put_word(word, floatBitsToUint(value));
  put_word(word + 1u, floatBitsToUint(float(column)));
}

void main() {
  uint row = group_index();
  bool live = row < valid_row_count(args.x);
  uint lane = gl_LocalInvocationID.x;
  uint begin = row_offset(args.x.extents, args.x.strides, row);
  uint last = 0u;
  uint last_place = 0u;
  uint best = 0u;
  uint place = kNone;
  for (uint j = 0u; j < args.k; ++j) {
    bool used = j == 0u || place == last_place;
    if (used) {
      best = 0u;
      place = kNone;
    }
    for (uint column = lane; live && used && column < args.x.extents.w; column += kGroup) {
      uint order = rank_of(x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w));
      if (j > 0u && !precedes(last, last_place, order, column)) continue;
      if (!precedes(order, column, best, place)) continue;
      best = order;
      place = column;
    }
    orders[lane] = best;
    places[lane] = place;
    barrier();
    for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
      if (lane < width && precedes(orders[lane + width], places[lane + width], orders[lane], places[lane])) {
        orders[lane] = orders[lane + width];
        places[lane] = places[lane + width];
      }
      barrier();
    }
    if (lane == 0u) {
      found_orders[j & 1u] = orders[0];
      found_places[j & 1u] = places[0];
    }
    barrier();
    last = found_orders[j & 1u];
    last_place = found_places[j & 1u];
    if (live && lane == 0u) put_place(row * args.k + j, begin, last_place);
  }
}
