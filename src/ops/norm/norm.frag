// A fragment normalizes one word of a row.
#include "ops/norm/factor.glsl"
#include "ops/words.glsl"

SHUNT_INPUT(4, weight)
SHUNT_INPUT(9, factors)

float element(uint index) {
  uint row = index / args.x.extents.w;
  uint column = index % args.x.extents.w;
  float value = x_at(row, column) * uintBitsToFloat(factors_word(row));
  if (args.has_weight == 0u) return value;
  uint at = row_offset(args.x.extents, args.weight_strides, row) + column * args.weight_strides.w;
  return value * weight_element(args.weight_dtype, byte_offset(2u), at);
}

void main() { store_word(args.x.dtype, valid_row_count(args.x) * args.x.extents.w); }
