// An invocation ranks one column of a row by counting the columns that precede it.
#include "ops/top_k/top_k_args.h"

#define Arguments TopKArgs
#include "ops/kernel.glsl"

#include "ops/top_k/order.glsl"

SHUNT_INPUT(3, x)

uint begin;  // of the row, in elements

uint rank_at(uint column) {
  return rank_of(x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w));
}

void main() {
  uint columns = args.x.extents.w;
  uint blocks = (columns + kGroup - 1u) / kGroup;
  uint row = group_index() / blocks;
  uint column = group_index() % blocks * kGroup + gl_LocalInvocationID.x;
  if (row >= valid_row_count(args.x) || column >= columns) return;
  begin = row_offset(args.x.extents, args.x.strides, row);
  uint order = rank_at(column);
  uint before = 0u;
  for (uint first = 0u; first < columns; first += kTopKAtOnce)
    for (uint i = 0u; i < kTopKAtOnce; ++i) {
      uint other = first + i;
      if (other < columns && precedes(rank_at(other), other, order, column)) ++before;
    }
  if (before < args.k) put_word((byte_offset(0u) >> 2u) + row * args.k + before, column);
}
