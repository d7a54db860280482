// A workgroup multiplies up to four rows of an expert's matrix by one row of x.
#include "ops/experts/experts_args.h"

#define Arguments ExpertsArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, ids)
SHUNT_INPUT(6, slots)
SHUNT_INPUT(7, bias)

shared vec4 sums[kGroup];

const uint kNoExpert = 0xFFFFFFFFu;

// The same as expert_slot in experts_args.h.
uint slot_of(uint use) {
  int slot = ids_int(byte_offset(3u), use / args.used * args.id_strides.x + use % args.used * args.id_strides.y);
  if (slot < 0 || uint(slot) >= args.experts) return kNoExpert;
  if (args.has_slots != 0u) slot = slots_int(byte_offset(4u), uint(slot) * args.slot_stride);
  return slot < 0 || uint(slot) >= args.held ? kNoExpert : uint(slot);
}

uint weight_row(uint slot, uint row) {
  return byte_offset(2u) + (slot * args.weight_rows + row) * args.weight_row_bytes;
}

float bias_of(uint slot, uint row) {
  if (args.has_bias == 0u || slot == kNoExpert) return 0.0;
  return bias_element(F32, byte_offset(5u), slot * args.bias_strides.x + row * args.bias_strides.y);
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint blocks = (args.m + kExpertsGroupRows - 1u) / kExpertsGroupRows;
  uint use = group_index() / blocks;
  uint first = group_index() % blocks * kExpertsGroupRows;
  bool is_valid = use < valid_rows(args.tokens, args.extent) * args.used;
  uint slot = kNoExpert;
  if (is_valid) slot = slot_of(use);
  uint rows = is_valid ? min(kExpertsGroupRows, args.m - first) : 0u;
  uint end_column = slot == kNoExpert ? 0u : args.k;
  uint x_row = use / args.used * args.x_strides.x + use % args.used * args.x_strides.y;
  uint dtype = kWeightDtype;
  vec4 sum = vec4(0.0);
  for (uint column = lane; column < end_column; column += kGroup) {
    float factor = x_element(F32, byte_offset(1u), x_row + column * args.x_strides.z);
    for (uint i = 0u; i < rows; ++i) sum[i] += factor * weight_of_row(dtype, weight_row(slot, first + i), column);
  }
  sums[lane] = sum;
  barrier();
  for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
    if (lane < width) sums[lane] += sums[lane + width];
    barrier();
  }
  if (lane >= rows) return;
  uint at = use * args.m + first + lane;
  store(F32, at, at + 1u, vec2(sums[0][lane] + bias_of(slot, first + lane), 0.0));
}
