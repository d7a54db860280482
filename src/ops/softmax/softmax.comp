// A workgroup turns the scores of one or two rows into shares.
#include "ops/softmax/softmax_args.h"

#define Arguments SoftmaxArgs
#include "ops/kernel.glsl"

#include "ops/order.glsl"
#include "ops/row_groups.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, mask)

uint first_row;
uint tops[2];  // order of the largest score
float sums[2];

float score(uint row, uint column) {
  float value = args.scale * x_element(args.x.dtype, byte_offset(1u),
                                       row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w);
  if (args.has_mask == 0u) return value;
  uint at = row_offset(args.x.extents, args.mask_strides, row) + column * args.mask_strides.w;
  return value + mask_element(args.mask_dtype, byte_offset(2u), at);
}

// Returns exp(of - largest of the row). REQUIRES: the largest is finite.
float power(uint row_in_group, float of) {
  return order_of(of) == kMinusInfinity ? 0.0 : exp(of - value_of(tops[row_in_group]));
}

float result(uint row_in_group, uint column) {
  uint top = tops[row_in_group];
  if (top <= kMinusInfinity) return 0.0;
  if (top >= kInfinity) return value_of(top | 0x00400000u);  // NaN, like infinity minus infinity
  return power(row_in_group, score(first_row + row_in_group, column)) / sums[row_in_group];
}

void main() {
  uint columns = args.x.extents.w;
  uint rows = rows_of_group(args.x.dtype, columns);
  uint valid = valid_row_count(args.x);
  uint lane = gl_LocalInvocationID.x;
  first_row = group_index() * rows;
  for (uint i = 0u; i < rows; ++i) {
    uint row = first_row + i;
    uint top = 0u;
    for (uint column = lane; row < valid && column < columns; column += kGroup)
      top = max(top, order_of(score(row, column)));
    tops[i] = largest_of_group(i, top);
    bool finite = tops[i] > kMinusInfinity && tops[i] < kInfinity;
    float sum = 0.0;
    for (uint column = lane; row < valid && finite && column < columns; column += kGroup)
      sum += power(i, score(row, column));
    sums[i] = sum_of_group(i, sum);
  }
  store_rows(args.x.dtype, columns, valid);
}
