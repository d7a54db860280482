// A fragment finds the column that belongs at its place, determining the order of that column's value bit by bit.
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

void main() {
  uint columns = args.x.extents.w;
  uint row = invocation_index() / columns;
  uint place = invocation_index() % columns;
  if (row >= valid_row_count(args.x)) return;
  begin = row_offset(args.x.extents, args.x.strides, row);
  uint order = 0u;
  for (uint bit = 0x80000000u; bit != 0u; bit >>= 1u)
    if (columns_below(order | bit) <= place) order |= bit;
  uint equals = place - columns_below(order);  // number among the columns of this value, lower indices first
  for (uint column = 0u; column < columns; ++column) {
    if (order_at(column) != order) continue;
    if (equals == 0u) put_word((byte_offset(0u) >> 2u) + invocation_index(), column);
    if (equals-- == 0u) return;
  }
}
