// A fragment normalizes one word of a row, whose sum of squares it computes by itself.
#include "ops/norm/norm_args.h"

#define Arguments NormArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, weight)

float x_at(uint row, uint column) {
  return x_element(args.x.dtype, byte_offset(1u), row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w);
}

float result(uint row, uint column, float factor) {
  float value = x_at(row, column) * factor;
  if (args.has_weight == 0u) return value;
  uint at = row_offset(args.x.extents, args.weight_strides, row) + column * args.weight_strides.w;
  return value * weight_element(args.weight_dtype, byte_offset(2u), at);
}

void main() {
  uint columns = args.x.extents.w;
  uint step = per_word(args.x.dtype);
  uint first = invocation_index() * step;
  uint row = first / columns;
  if (row >= valid_row_count(args.x)) return;
  float sum = 0.0;
  for (uint column = 0u; column < columns; ++column) {
    float value = x_at(row, column);
    sum += value * value;
  }
  float factor = 1.0 / sqrt(sum / float(columns) + args.epsilon);
  uint column = first % columns;
  float second = step == 2u ? result(row, column + 1u, factor) : 0.0;
  store(args.x.dtype, first, first + step, vec2(result(row, column, factor), second));
}
