// A fragment finds the largest element of one row.
#include "ops/argmax/argmax_args.h"

#define Arguments ArgmaxArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)

void main() {
  uint row = invocation_index();
  if (row >= valid_row_count(args.x)) return;
  uint begin = row_offset(args.x.extents, args.x.strides, row);
  float best = 0.0;
  uint place = 0u;
  bool found = false;
  for (uint column = 0u; column < args.x.extents.w; ++column) {
    float value = x_element(args.x.dtype, byte_offset(1u), begin + column * args.x.strides.w);
    bool is_number = (floatBitsToUint(value) & 0x7FFFFFFFu) <= 0x7F800000u;
    if (!is_number || (found && value <= best)) continue;
    best = value;
    place = column;
    found = true;
  }
  put_word((byte_offset(0u) >> 2u) + row, place);
}
