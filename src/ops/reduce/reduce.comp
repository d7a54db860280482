// A workgroup reduces one row, or two if two results share a word.
#include "ops/reduce/reduce_args.h"

#define Arguments ReduceArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"
#include "ops/row_groups.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, b)

const uint kStretch = 64u;  // elements that an invocation sums before adding to its total, for precision on long rows

float values[2];

float result(uint row_in_group, uint column) { return values[row_in_group]; }

float element(uint row, uint column) {
  uint at = row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w;
  float value = x_element(args.x.dtype, byte_offset(1u), at);
  if (args.kind != kReduceDot) return value;
  uint b_at = row_offset(args.x.extents, args.b_strides, row) + column * args.b_strides.w;
  return value * b_element(args.b_dtype, byte_offset(2u), b_at);
}

// This invocation's part of the sum of a row.
float part_of_sum(uint row) {
  float sum = 0.0;
  for (uint begin = gl_LocalInvocationID.x; begin < args.x.extents.w; begin += kGroup * kStretch) {
    uint left = (args.x.extents.w - begin + kGroup - 1u) / kGroup;
    float stretch = 0.0;
    for (uint i = 0u; i < min(left, kStretch); ++i) stretch += element(row, begin + i * kGroup);
    sum += stretch;
  }
  return sum;
}

void main() {
  uint columns = args.x.extents.w;
  uint rows = rows_of_group(args.x.dtype, 1u);
  uint valid = valid_row_count(args.x);
  uint first_row = group_index() * rows;
  for (uint i = 0u; i < rows; ++i) {
    uint row = first_row + i;
    if (args.kind == kReduceMax) {
      uint top = 0u;
      for (uint column = gl_LocalInvocationID.x; row < valid && column < columns; column += kGroup)
        top = max(top, order_of(element(row, column)));
      values[i] = value_of(largest_of_group(i, top));
    } else {
      values[i] = sum_of_group(i, row < valid ? part_of_sum(row) : 0.0);
      if (args.kind == kReduceMean) values[i] /= float(columns);
    }
  }
  store_rows(args.x.dtype, 1u, valid);
}
