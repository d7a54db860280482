// A workgroup computes one head of one token: online softmax over tiles of 64 positions, one score per invocation. Then
// each invocation sums up to four elements of the result. Larger heads take several passes.
#include "ops/attention/attention_args.h"
#include "ops/page_table.glsl"

#define Arguments AttentionArgs
#include "ops/kernel.glsl"

#include "ops/attention/visible.glsl"

SHUNT_INPUT(3, query)
SHUNT_INPUT(4, keys)
SHUNT_INPUT(5, values)
SHUNT_INPUT(6, positions)
SHUNT_INPUT(7, sequences)
SHUNT_INPUT(8, pages)
SHUNT_INPUT(9, sinks)

const uint kElements = kHeadPart / kGroup;  // of the result, per invocation
shared uint slots[kGroup];
shared float scores[kGroup];
shared float tops[kGroup];

// Writes the elements of the group's row from `part` on. WGSL requires that all invocations of a group pass every
// barrier, in loops whose bounds come from uniform blocks alone.
void attend(uint part) {
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
  uint visible = visible_positions(sequence, position);
  uint first = first_position(position);

  float sums[kElements];
  for (uint i = 0u; i < kElements; ++i) sums[i] = 0.0;
  float largest = kLeast;
  float total = 0.0;
  if (args.has_sinks != 0u) {
    float sink = sinks_element(F32, byte_offset(7u), row % heads * args.sink_stride);
    if (is_number(sink) && sink > kLeast) {
      largest = sink;
      total = 1.0;
    }
  }
  uint capacity = args.table.sequence_pages * args.table.page_tokens;
  uint end = parameters.positions == 0u ? capacity : min(capacity, parameters.positions);
  if (args.window != 0u) end = min(end, args.window);
  for (uint tile = 0u; tile < end; tile += kGroup) {
    uint begin_position = first + tile;
    uint slot = kNoSlot;
    float score = kLeast;
    if (begin_position + lane < visible) {
      int page = pages_int(byte_offset(6u), page_entry(args.table, sequence, begin_position + lane));
      slot = slot_in_page(args.table, page, begin_position + lane);
    }
    if (slot != kNoSlot) {
      uint begin = (slot * args.kv_heads + kv_head) * head_dim;
      score = 0.0;
      for (uint i = 0u; i < head_dim; ++i)
        score += query_element(args.query.dtype, byte_offset(1u), query_begin + i * args.query.strides.w) *
                 keys_element(args.state_dtype, byte_offset(2u), begin + i);
      score = capped(score * args.scale);
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
    // The tile is summed before it is added, so that long sums stay precise.
    float tile_total = 0.0;
    float tile_sums[kElements];
    for (uint i = 0u; i < kElements; ++i) tile_sums[i] = 0.0;
    for (uint at = 0u; begin_position + at < visible && at < kGroup; ++at) {
      if (slots[at] == kNoSlot) continue;
      uint begin = (slots[at] * args.kv_heads + kv_head) * head_dim + part;
      tile_total += scores[at];
      for (uint i = 0u; i < kElements; ++i) {
        uint d = lane + i * kGroup;
        if (part + d < head_dim)
          tile_sums[i] += scores[at] * values_element(args.state_dtype, byte_offset(3u), begin + d);
      }
    }
    total += tile_total;
    // Two loops, because one would contain an fma, which SPIRV-Cross mistranslates for OpenGL ES
    // (cmake/embed_shader.cmake).
    for (uint i = 0u; i < kElements; ++i) sums[i] *= shrink;
    for (uint i = 0u; i < kElements; ++i) sums[i] += tile_sums[i];
    barrier();
  }
  for (uint i = 0u; i < kElements; ++i) {
    uint d = part + lane + i * kGroup;
    uint at = row * head_dim + d;
    if (live && d < head_dim) store(F32, at, at + 1u, vec2(total == 0.0 ? 0.0 : sums[i] / total, 0.0));
  }
}

void main() {
  for (uint part = 0u; part < args.query.extents.w; part += kHeadPart) attend(part);
}
