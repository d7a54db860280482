// A workgroup normalizes one or two rows.
#include "ops/layer_norm/layer_norm_args.h"

#define Arguments LayerNormArgs
#include "ops/kernel.glsl"

#include "ops/row_groups.glsl"

SHUNT_INPUT(3, x)

// Columns of a stretch. An invocation sums its own columns of a stretch before it adds them to the rest, so that long
// rows stay precise.
const uint kStretch = 64u * kGroup;

uint first_row;
float means[2];
float factors[2];

float x_at(uint row, uint column) {
  return x_element(args.x.dtype, byte_offset(1u),
                   row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w);
}

float result(uint row_in_group, uint column) {
  return (x_at(first_row + row_in_group, column) - means[row_in_group]) * factors[row_in_group];
}

void main() {
  uint columns = args.x.extents.w;
  uint rows = rows_of_group(args.x.dtype, columns);
  uint valid = valid_row_count(args.x);
  uint lane = gl_LocalInvocationID.x;
  first_row = group_index() * rows;
  for (uint i = 0u; i < rows; ++i) {
    uint row = first_row + i;
    float sum = 0.0;
    for (uint first = lane; row < valid && first < columns; first += kStretch) {
      float stretch = 0.0;
      for (uint column = first; column < min(columns, first + kStretch); column += kGroup) stretch += x_at(row, column);
      sum += stretch;
    }
    means[i] = sum_of_group(2u * i, sum) / float(columns);
    float squares = 0.0;
    for (uint first = lane; row < valid && first < columns; first += kStretch) {
      float stretch = 0.0;
      for (uint column = first; column < min(columns, first + kStretch); column += kGroup) {
        float distance = x_at(row, column) - means[i];
        stretch += distance * distance;
      }
      squares += stretch;
    }
    factors[i] = 1.0 / sqrt(sum_of_group(2u * i + 1u, squares) / float(columns) + args.epsilon);
  }
  store_rows(args.x.dtype, columns, valid);
}
