// One invocation writes one word of the state: one element, or two of 16 bits. The output is the state.
#include "ops/cache/cache_args.h"
#include "ops/page_table.glsl"
#include "ops/rotary/rotary.glsl"

#define Arguments CacheArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(4, x)
SHUNT_INPUT(5, positions)
SHUNT_INPUT(6, sequences)
SHUNT_INPUT(7, pages)
SHUNT_INPUT(8, turns)

float element(uint row, uint i, uint position) {
  StridedTensor x = args.rotary.x;
  uint begin = row_offset(x.extents, x.strides, row);
  uint offset = byte_offset(2u);
  if (args.rotates == 0u || i >= args.rotary.dims) return x_element(x.dtype, offset, begin + i * x.strides.w);
  RotaryPair pair = pair_of(args.rotary, i);
  float first = x_element(x.dtype, offset, begin + pair.first * x.strides.w);
  float second = x_element(x.dtype, offset, begin + pair.second * x.strides.w);
  uvec2 turn = uvec2(turns_word(2u * pair.number), turns_word(2u * pair.number + 1u));
  return turned(pair, first, second, rotation(position, turn));
}

void main() {
  StridedTensor x = args.rotary.x;
  uint head_dim = x.extents.w;
  uint heads = x.extents.z;
  uint step = per_word(args.state_dtype);
  uint index = invocation_index() * step;
  uint row = index / head_dim;  // a token and a head
  if (row >= valid_row_count(x)) return;
  uint token = row / heads;
  int position = positions_int(byte_offset(3u), token * args.table.position_stride);
  int sequence = sequences_int(byte_offset(4u), token * args.table.sequence_stride);
  if (position < 0 || uint(position) >= sequence_capacity(args.table, sequence)) return;
  int page = pages_int(byte_offset(5u), page_entry(args.table, sequence, uint(position)));
  uint slot = slot_in_page(args.table, page, uint(position));
  if (slot == kNoSlot) return;
  uint i = index % head_dim;
  uint at = (slot * heads + row % heads) * head_dim + i;
  float second = step == 2u ? element(row, i + 1u, uint(position)) : 0.0;
  store(args.state_dtype, at, at + step, vec2(element(row, i, uint(position)), second));
}
