// One invocation widens one element. For an id outside x, the row of the result is left unchanged.
#include "ops/gather/gather_args.h"

#define Arguments GatherArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kDtype = 0u;

SHUNT_WEIGHT(3, x)
SHUNT_INPUT(4, ids)

void main() {
  uint dtype = kDtype;
  uint index = invocation_index();
  if (index >= valid_rows(args.ids, args.extent) * args.columns) return;
  uint column = index % args.columns;
  int id = ids_int(byte_offset(2u), index / args.columns * args.id_stride);
  if (id < 0 || uint(id) >= args.rows) return;
  uint row = byte_offset(1u) + uint(id) * row_bytes(dtype, args.strides.x);
  store(F32, index, index + 1u, vec2(x_of_row(dtype, row, column * args.strides.y), 0.0));
}
