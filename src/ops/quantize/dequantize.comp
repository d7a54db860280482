// One invocation computes one word of the result, whose elements are floats.
#include "ops/quantize/quantize_args.h"

#define Arguments QuantizeArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kFrom = 0u;

SHUNT_WEIGHT(3, x)

float x_at(uint from, uint index) {
  uint columns = args.x.extents.w;
  uint row = row_offset(args.x.extents, args.x.strides, index / columns);
  return x_of_row(from, byte_offset(1u) + row_bytes(from, row), index % columns);
}

void main() {
  uint from = kFrom;
  uint first = invocation_index() * per_word(args.to);
  uint end = valid_row_count(args.x) * args.x.extents.w;
  if (first >= end) return;
  // Rows are whole blocks, so no word holds elements of two rows.
  float second = is_half(args.to) ? x_at(from, first + 1u) : 0.0;
  store(args.to, first, end, vec2(x_at(from, first), second));
}
