// A fragment finds the column at a place of the result, or that column's value.
#include "ops/top_k/top_k_args.h"

#define Arguments TopKArgs
#include "ops/kernel.glsl"

#include "ops/top_k/order.glsl"

SHUNT_INPUT(3, x)

uint begin;  // of the row, in elements

float x_at(uint column) { return x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w); }
uint key_at(uint column) { return ~rank_of(x_at(column)); }

#include "ops/place_search.glsl"

void main() {
  uint words = 1u + args.with_values;  // of a place
  uint place = invocation_index() / words;
  uint row = place / args.k;
  if (row >= valid_row_count(args.x)) return;
  begin = row_offset(args.x.extents, args.x.strides, row);
  uint column = column_at(args.x.extents.w, place % args.k);
  uint bits = column;
  if (args.with_values != 0u) bits = floatBitsToUint(invocation_index() % words == 0u ? x_at(column) : float(column));
  put_word((byte_offset(0u) >> 2u) + invocation_index(), bits);
}
