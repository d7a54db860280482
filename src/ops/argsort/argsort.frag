// A fragment finds the column that belongs at its place.
#include "ops/argsort/argsort_args.h"

#define Arguments ArgsortArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"

SHUNT_INPUT(3, x)

uint begin;  // of the row, in elements

uint key_at(uint column) {
  return order_of(x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w));
}

#include "ops/place_search.glsl"

void main() {
  uint columns = args.x.extents.w;
  uint row = invocation_index() / columns;
  if (row >= valid_row_count(args.x)) return;
  begin = row_offset(args.x.extents, args.x.strides, row);
  put_word((byte_offset(0u) >> 2u) + invocation_index(), column_at(columns, invocation_index() % columns));
}
