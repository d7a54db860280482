// An invocation finds the place of one column of a row: the number of columns that precede it.
#include "ops/argsort/argsort_args.h"

#define Arguments ArgsortArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"

SHUNT_INPUT(3, x)

const uint kAtOnce = 4u;

uint begin;  // of the row, in elements

uint order_at(uint column) {
  return order_of(x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w));
}

void main() {
  uint columns = args.x.extents.w;
  uint blocks = (columns + kGroup - 1u) / kGroup;
  uint row = group_index() / blocks;
  uint column = group_index() % blocks * kGroup + gl_LocalInvocationID.x;
  if (row >= valid_row_count(args.x) || column >= columns) return;
  begin = row_offset(args.x.extents, args.x.strides, row);
  uint order = order_at(column);
  uint before = 0u;
  for (uint first = 0u; first < columns; first += kAtOnce)
    for (uint i = 0u; i < kAtOnce; ++i) {
      uint other = first + i;
      if (other >= columns) continue;
      uint its = order_at(other);
      if (its < order || (its == order && other < column)) ++before;
    }
  put_word((byte_offset(0u) >> 2u) + row * columns + before, column);
}
