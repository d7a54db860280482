// A workgroup of 128 computes one head of one token over F16 keys and values. It scores 128 positions at a time, one
// per invocation; then each invocation sums one word of the values of every few positions.
#include "ops/vulkan.glsl"
SHUNT_EXTENSION(GL_KHR_shader_subgroup_basic)
SHUNT_EXTENSION(GL_KHR_shader_subgroup_arithmetic)
SHUNT_EXTENSION(GL_EXT_control_flow_attributes)
#include "ops/attention/attention_args.h"
#include "ops/page_table.glsl"

#define Arguments AttentionArgs
#define SHUNT_GROUP_SIZE_ID 3
#include "ops/kernel.glsl"

#include "ops/attention/visible.glsl"

layout(constant_id = 0) const uint kHeadDim = 64u;  // a multiple of 8, at most kHeadPart

SHUNT_INPUT(3, query)
SHUNT_INPUT(4, keys)
SHUNT_INPUT(5, values)
SHUNT_INPUT(6, positions)
SHUNT_INPUT(7, sequences)
SHUNT_INPUT(8, pages)
SHUNT_INPUT(9, sinks)
layout(std430, binding = 4) readonly buffer key_vector_buffer { uvec4 key_vectors[]; };

const uint kTile = 128u;  // invocations of the workgroup
const uint kAhead = 8u;   // words of values that an invocation loads before it waits for the first
const uint kMostSubgroups = 32u;
shared vec4 query_row[kHeadPart / 4u];
shared uint slots[kTile];
shared float scores[kTile];
shared vec2 sums_of_lanes[kTile];
shared float parts[kMostSubgroups];

vec4 halves(uvec2 words) { return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)); }

// Returns eight elements of a key, from number `element` on. Consecutive reads stay outside branches, because a device
// waits at the end of each.
uvec4 key_of(const bool in_vectors, uint element) {
  if (in_vectors) return key_vectors[(byte_offset(2u) >> 4u) + (element >> 3u)];
  uint word = (byte_offset(2u) >> 2u) + (element >> 1u);
  return uvec4(keys_word(word), keys_word(word + 1u), keys_word(word + 2u), keys_word(word + 3u));
}

float score_of(const bool in_vectors, uint begin) {
  uint head_dim = kHeadDim;
  float score = 0.0;
  [[unroll]] for (uint i = 0u; i < head_dim; i += 8u) {
    uvec4 words = key_of(in_vectors, begin + i);
    score += dot(query_row[i / 4u], halves(words.xy)) + dot(query_row[i / 4u + 1u], halves(words.zw));
  }
  return capped(score * args.scale);
}

float largest_of_parts(float least) {
  float largest = least;
  for (uint i = 0u; i < gl_NumSubgroups; ++i) largest = max(largest, parts[i]);
  return largest;
}

void main() {
  uint row = group_index();
  if (row >= valid_row_count(args.query)) return;
  uint lane = gl_LocalInvocationIndex;
  uint heads = args.query.extents.z;
  uint head_dim = kHeadDim;
  uint token = row / heads;
  uint kv_head = row % heads / (heads / args.kv_heads);
  uint query_begin = row_offset(args.query.extents, args.query.strides, row);
  for (uint i = lane; i < head_dim; i += kTile)
    query_row[i / 4u][i % 4u] =
        query_element(args.query.dtype, byte_offset(1u), query_begin + i * args.query.strides.w);
  int position = positions_int(byte_offset(4u), token * args.table.position_stride);
  int sequence = sequences_int(byte_offset(5u), token * args.table.sequence_stride);
  uint visible = visible_positions(sequence, position);

  bool in_vectors = (byte_offset(2u) & 15u) == 0u;
  // This invocation sums one word of the values of every `strands`-th position.
  uint words = head_dim / 2u;
  uint strands = kTile / words;
  uint strand = lane / words;
  vec2 sums = vec2(0.0);
  float total = 0.0;
  float largest = kLeast;
  if (args.has_sinks != 0u) {
    float sink = sinks_element(F32, byte_offset(7u), row % heads * args.sink_stride);
    if (is_number(sink) && sink > kLeast) {
      largest = sink;
      total = lane == 0u ? 1.0 : 0.0;
    }
  }
  barrier();
  for (uint tile = first_position(position); tile < visible; tile += kTile) {
    uint slot = kNoSlot;
    float score = kLeast;
    if (tile + lane < visible) {
      int page = pages_int(byte_offset(6u), page_entry(args.table, sequence, tile + lane));
      slot = slot_in_page(args.table, page, tile + lane);
    }
    uint key_begin = (slot * args.kv_heads + kv_head) * head_dim;
    if (slot != kNoSlot) score = in_vectors ? score_of(true, key_begin) : score_of(false, key_begin);
    float largest_here = subgroupMax(score);
    if (subgroupElect()) parts[gl_SubgroupID] = largest_here;
    slots[lane] = slot;
    barrier();
    float top = largest_of_parts(largest);
    float mine = slot == kNoSlot ? 0.0 : exp(score - top);
    scores[lane] = mine;
    float shrink = exp(largest - top);
    largest = top;
    total = total * shrink + mine;
    sums *= shrink;
    barrier();
    uint end = min(kTile, visible - tile);
    for (uint at = strand; strand < strands && at < end; at += kAhead * strands) {
      uint value_words[kAhead];
      [[unroll]] for (uint a = 0u; a < kAhead; ++a) {
        uint found = slots[min(at + a * strands, end - 1u)];
        uint begin = ((found == kNoSlot ? 0u : found) * args.kv_heads + kv_head) * head_dim;
        value_words[a] = values_word((byte_offset(3u) >> 2u) + begin / 2u + lane % words);
      }
      [[unroll]] for (uint a = 0u; a < kAhead; ++a) {
        uint place = min(at + a * strands, end - 1u);
        bool counts = at + a * strands < end && slots[place] != kNoSlot;
        sums += counts ? scores[place] * unpackHalf2x16(value_words[a]) : vec2(0.0);
      }
    }
    barrier();
  }

  float total_here = subgroupAdd(total);
  if (subgroupElect()) parts[gl_SubgroupID] = total_here;
  sums_of_lanes[lane] = sums;
  barrier();
  if (lane >= words) return;
  total = 0.0;
  for (uint i = 0u; i < gl_NumSubgroups; ++i) total += parts[i];
  for (uint i = 1u; i < strands; ++i) sums += sums_of_lanes[lane + i * words];
  uint at = (byte_offset(0u) >> 2u) + row * head_dim + 2u * lane;
  put_word(at, floatBitsToUint(total == 0.0 ? 0.0 : sums.x / total));
  put_word(at + 1u, floatBitsToUint(total == 0.0 ? 0.0 : sums.y / total));
}
