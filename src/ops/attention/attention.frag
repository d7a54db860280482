// A fragment computes one element of the result: the scores of all positions that its token sees, weighted as they come
// (online softmax).
#include "ops/attention/attention_args.h"
#include "ops/page_table.glsl"

#define Arguments AttentionArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, query)
SHUNT_INPUT(4, keys)
SHUNT_INPUT(5, values)
SHUNT_INPUT(6, positions)
SHUNT_INPUT(7, sequences)
SHUNT_INPUT(8, pages)

float score_of(uint query_begin, uint key_begin) {
  float score = 0.0;
  for (uint i = 0u; i < args.query.extents.w; ++i)
    score += query_element(args.query.dtype, byte_offset(1u), query_begin + i * args.query.strides.w) *
             keys_element(args.state_dtype, byte_offset(2u), key_begin + i);
  return score * args.scale;
}

void main() {
  uint index = invocation_index();
  uint heads = args.query.extents.z;
  uint head_dim = args.query.extents.w;
  uint row = index / head_dim;
  if (row >= valid_row_count(args.query)) return;
  uint token = row / heads;
  uint kv_head = row % heads / (heads / args.kv_heads);
  uint query_begin = row_offset(args.query.extents, args.query.strides, row);
  int position = positions_int(byte_offset(4u), token * args.table.position_stride);
  int sequence = sequences_int(byte_offset(5u), token * args.table.sequence_stride);
  uint visible = position < 0 ? 0u : min(uint(position) + 1u, sequence_capacity(args.table, sequence));
  float sum = 0.0;
  float total = 0.0;
  float largest = -3.0e38;
  for (uint at = 0u; at < visible; ++at) {
    uint slot = slot_in_page(args.table, pages_int(byte_offset(6u), page_entry(args.table, sequence, at)), at);
    if (slot == kNoSlot) continue;
    uint begin = (slot * args.kv_heads + kv_head) * head_dim;
    float score = score_of(query_begin, begin);
    float top = max(largest, score);
    float shrink = exp(largest - top);
    float share = exp(score - top);
    largest = top;
    total = total * shrink + share;
    sum = sum * shrink + share * values_element(args.state_dtype, byte_offset(3u), begin + index % head_dim);
  }
  store(F32, index, index + 1u, vec2(total == 0.0 ? 0.0 : sum / total, 0.0));
}
