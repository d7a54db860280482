// A workgroup normalizes one row.
#include "ops/norm/norm_args.h"

#define Arguments NormArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, weight)

shared float sums[kGroup];

float x_at(uint row, uint column) {
  return x_element(args.x.dtype, byte_offset(1u),
                   row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w);
}

float result(uint row, uint column, float factor) {
  float value = x_at(row, column) * factor;
  if (args.has_weight == 0u) return value;
  uint at = row_offset(args.x.extents, args.weight_strides, row) + column * args.weight_strides.w;
  return value * weight_element(args.weight_dtype, byte_offset(2u), at);
}

void main() {
  uint row = group_index();
  bool live = row < valid_row_count(args.x);
  uint lane = gl_LocalInvocationID.x;
  uint columns = args.x.extents.w;
  float sum = 0.0;
  for (uint column = lane; live && column < columns; column += kGroup) {
    float value = x_at(row, column);
    sum += value * value;
  }
  sums[lane] = sum;
  barrier();
  for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
    if (lane < width) sums[lane] += sums[lane + width];
    barrier();
  }
  float factor = 1.0 / sqrt(sums[0] / float(columns) + args.epsilon);
  uint step = per_word(args.x.dtype);
  for (uint column = lane * step; live && column < columns; column += kGroup * step) {
    float second = column + 1u < columns && step == 2u ? result(row, column + 1u, factor) : 0.0;
    store(args.x.dtype, row * columns + column, (row + 1u) * columns, vec2(result(row, column, factor), second));
  }
}
