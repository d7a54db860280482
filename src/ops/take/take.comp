// One invocation writes one word of the result.
#include "ops/take/take_args.h"

#define Arguments TakeArgs
#include "ops/kernel.glsl"

#include "ops/bits.glsl"

SHUNT_BITS(3, x)
SHUNT_INPUT(4, ids)

uint result_bits(uint index) {
  uint row = index / args.count;
  uint j = index % args.count;
  int id = ids_int(byte_offset(2u), row_offset(args.x.extents, args.id_strides, row) + j * args.id_strides.w);
  if (id < 0 || uint(id) >= args.x.extents.w) return 0u;
  uint at = row_offset(args.x.extents, args.x.strides, row) + uint(id) * args.x.strides.w;
  return x_bits(args.x.dtype, byte_offset(1u), at);
}

void main() { store_word_of_bits(args.x.dtype, valid_row_count(args.x) * args.count); }
