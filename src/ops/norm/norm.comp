// A workgroup normalizes one or two rows.
#include "ops/norm/norm_args.h"

#define Arguments NormArgs
#include "ops/kernel.glsl"

#include "ops/row_groups.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, weight)

uint first_row;
float factors[2];

float x_at(uint row, uint column) {
  return x_element(args.x.dtype, byte_offset(1u),
                   row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w);
}

float result(uint row_in_group, uint column) {
  uint row = first_row + row_in_group;
  float value = x_at(row, column) * factors[row_in_group];
  if (args.has_weight == 0u) return value;
  uint at = row_offset(args.x.extents, args.weight_strides, row) + column * args.weight_strides.w;
  return value * weight_element(args.weight_dtype, byte_offset(2u), at);
}

void main() {
  uint columns = args.x.extents.w;
  uint rows = rows_of_group(args.x.dtype, columns);
  uint valid = valid_row_count(args.x);
  first_row = group_index() * rows;
  for (uint i = 0u; i < rows; ++i) {
    bool live = first_row + i < valid;
    float sum = 0.0;
    for (uint column = gl_LocalInvocationID.x; live && column < columns; column += kGroup) {
      float value = x_at(first_row + i, column);
      sum += value * value;
    }
    factors[i] = 1.0 / sqrt(sum_of_group(i, sum) / float(columns) + args.epsilon);
  }
  store_rows(args.x.dtype, columns, valid);
}
