// A fragment finds the column that belongs at its place, determining the order of that column's value four bits at a
// time.
#include "ops/argsort/argsort_args.h"

#define Arguments ArgsortArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"

SHUNT_INPUT(3, x)

uint begin;  // of the row, in elements

uint order_at(uint column) {
  return order_of(x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w));
}

uint columns_below(uint order) {
  uint count = 0u;
  for (uint column = 0u; column < args.x.extents.w; ++column)
    if (order_at(column) < order) ++count;
  return count;
}

// Returns the largest of the 16 orders from `order` on, `step` apart, that at most `place` columns are below.
uint next_order(uint order, uint step, uint place) {
  uvec4 limits = uvec4(order) + step * uvec4(0u, 1u, 2u, 3u);
  uvec4 counts[4] = uvec4[](uvec4(0u), uvec4(0u), uvec4(0u), uvec4(0u));
  for (uint column = 0u; column < args.x.extents.w; ++column) {
    uvec4 found = uvec4(order_at(column));
    for (uint i = 0u; i < 4u; ++i) counts[i] += uvec4(lessThan(found, limits + step * 4u * i));
  }
  uvec4 steps = uvec4(0u);  // with at most `place` columns below; the first has
  for (uint i = 0u; i < 4u; ++i) steps += uvec4(lessThanEqual(counts[i], uvec4(place)));
  return order + step * (steps.x + steps.y + steps.z + steps.w - 1u);
}

void main() {
  uint columns = args.x.extents.w;
  uint row = invocation_index() / columns;
  uint place = invocation_index() % columns;
  if (row >= valid_row_count(args.x)) return;
  begin = row_offset(args.x.extents, args.x.strides, row);
  uint order = 0u;
  for (uint step = 1u << 28; step != 0u; step >>= 4u) order = next_order(order, step, place);
  uint equals = place - columns_below(order);  // number among the columns of this value, lower indices first
  for (uint column = 0u; column < columns; ++column) {
    if (order_at(column) != order) continue;
    if (equals == 0u) put_word((byte_offset(0u) >> 2u) + invocation_index(), column);
    if (equals-- == 0u) return;
  }
}
