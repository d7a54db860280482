// Shared by the attention fragment shaders: the positions that a token sees, and their scores.
#include "ops/attention/attention_args.h"
#include "ops/page_table.glsl"

#define Arguments AttentionArgs
#include "ops/kernel.glsl"

#include "ops/attention/visible.glsl"

SHUNT_INPUT(3, query)
SHUNT_INPUT(4, keys)
SHUNT_INPUT(6, positions)
SHUNT_INPUT(7, sequences)
SHUNT_INPUT(8, pages)

// Returns the number of positions that a row of the first pass has room for.
uint capacity() { return args.table.sequence_pages * args.table.page_tokens; }

// A token and one of its heads.
struct Row {
  uint number;
  uint kv_head;
  int sequence;
  uint first;    // the first position that the token sees
  uint visible;  // one past the last
};
Row row_of(uint number) {
  uint heads = args.query.extents.z;
  uint token = number / heads;
  int position = positions_int(byte_offset(4u), token * args.table.position_stride);
  int sequence = sequences_int(byte_offset(5u), token * args.table.sequence_stride);
  return Row(number, number % heads / (heads / args.kv_heads), sequence, first_position(position),
             visible_positions(sequence, position));
}

// Returns kNoSlot if the position has no page. REQUIRES: position < row.visible.
uint slot_of(Row row, uint position) {
  int page = pages_int(byte_offset(6u), page_entry(args.table, row.sequence, position));
  return slot_in_page(args.table, page, position);
}
// Returns the first element of a slot's keys and values.
uint element_of(Row row, uint slot) { return (slot * args.kv_heads + row.kv_head) * args.query.extents.w; }

float score_of(Row row, uint slot) {
  uint query_begin = row_offset(args.query.extents, args.query.strides, row.number);
  uint key_begin = element_of(row, slot);
  float score = 0.0;
  for (uint i = 0u; i < args.query.extents.w; ++i)
    score += query_element(args.query.dtype, byte_offset(1u), query_begin + i * args.query.strides.w) *
             keys_element(args.state_dtype, byte_offset(2u), key_begin + i);
  return capped(score * args.scale);
}
