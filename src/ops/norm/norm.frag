// A fragment normalizes one word of a row.
#include "ops/norm/factor.glsl"

SHUNT_INPUT(4, weight)
SHUNT_INPUT(9, factors)

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
  float factor = uintBitsToFloat(factors_word(row));
  uint column = first % columns;
  float second = step == 2u ? result(row, column + 1u, factor) : 0.0;
  store(args.x.dtype, first, first + step, vec2(result(row, column, factor), second));
}
