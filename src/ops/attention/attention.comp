// A workgroup attends with one head of one token: online softmax over tiles of 64 positions, of which each invocation
// scores one; then each invocation sums up to four elements of the result.
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

const uint kElements = kLargestGroupHead / kGroup;  // of the result, per invocation
// Tint refuses the largest float as naga writes it.
const float kLeast = -3.0e38;
shared uint slots[kGroup];
shared float scores[kGroup];
shared float tops[kGroup];

// All invocations of a group pass every barrier, in loops whose bounds come from uniform blocks alone: what WGSL asks.
void main() {
  uint row = group_index();
  bool live = row < valid_row_count(args.query);
  uint lane = gl_LocalInvocationID.x;
  uint heads = args.query.extents.z;
  uint head_dim = args.query.extents.w;
  uint token = live ? row / heads : 0u;
  uint kv_head = row % heads / (heads / args.kv_heads);
  uint query_begin = row_offset(args.query.extents, args.query.strides, row);
  int position = live ? positions_int(byte_offset(4u), token * args.table.position_stride) : -1;
  int sequence = live ? sequences_int(byte_offset(5u), token * args.table.sequence_stride) : -1;
  uint visible = position < 0 ? 0u : min(uint(position) + 1u, sequence_capacity(args.table, sequence));

  float sums[kElements];
  for (uint i = 0u; i < kElements; ++i) sums[i] = 0.0;
  float largest = kLeast;
  float total = 0.0;
  uint capacity = args.table.sequence_pages * args.table.page_tokens;
  uint end = parameters.positions == 0u ? capacity : min(capacity, parameters.positions);
  for (uint tile = 0u; tile < end; tile += kGroup) {
    uint slot = kNoSlot;
    float score = kLeast;
    if (tile + lane < visible) {
      int page = pages_int(byte_offset(6u), page_entry(args.table, sequence, tile + lane));
      slot = slot_in_page(args.table, page, tile + lane);
    }
    if (slot != kNoSlot) {
      uint begin = (slot * args.kv_heads + kv_head) * head_dim;
      score = 0.0;
      for (uint i = 0u; i < head_dim; ++i)
        score += query_element(args.query.dtype, byte_offset(1u), query_begin + i * args.query.strides.w) *
                 keys_element(args.state_dtype, byte_offset(2u), begin + i);
      score *= args.scale;
    }
    slots[lane] = slot;
    tops[lane] = score;
    barrier();
    for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
      if (lane < width) tops[lane] = max(tops[lane], tops[lane + width]);
      barrier();
    }
    float top = max(largest, tops[0]);
    scores[lane] = slot == kNoSlot ? 0.0 : exp(score - top);
    barrier();
    float shrink = exp(largest - top);
    largest = top;
    total *= shrink;
    for (uint i = 0u; i < kElements; ++i) sums[i] *= shrink;
    for (uint at = 0u; tile + at < visible && at < kGroup; ++at) {
      if (slots[at] == kNoSlot) continue;
      uint begin = (slots[at] * args.kv_heads + kv_head) * head_dim;
      total += scores[at];
      for (uint i = 0u; i < kElements; ++i) {
        uint d = lane + i * kGroup;
        if (d < head_dim) sums[i] += scores[at] * values_element(args.state_dtype, byte_offset(3u), begin + d);
      }
    }
    barrier();
  }
  for (uint i = 0u; i < kElements; ++i) {
    uint d = lane + i * kGroup;
    uint at = row * head_dim + d;
    if (live && d < head_dim) store(F32, at, at + 1u, vec2(total == 0.0 ? 0.0 : sums[i] / total, 0.0));
  }
}
