// Few rows of x, normalized, times one weight or two, as generation has them. A workgroup keeps x, times norm, where
// all of its teams read it; a team of 32 invocations multiplies one row of each weight with all rows of x. What the sum
// of the squares of x makes of a row is a factor, which the products get at the end.
#include "ops/vulkan.glsl"
SHUNT_EXTENSION(GL_KHR_shader_subgroup_basic)
SHUNT_EXTENSION(GL_KHR_shader_subgroup_arithmetic)
SHUNT_EXTENSION(GL_EXT_control_flow_attributes)
#include "ops/matmul/matmul_args.h"

#define Arguments MatmulArgs
#define SHUNT_GROUP_SIZE_ID 3
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;
layout(constant_id = 1) const uint kXRows = 1u;    // at most kMatmulRowXRows
layout(constant_id = 2) const uint kWeights = 1u;  // 1, or 2: gate and up

SHUNT_INPUT(3, x)
SHUNT_WORDS(4, gate)
SHUNT_WORDS(5, norm)
SHUNT_WORDS(6, up)
bool is_up = false;
uint weight_word(uint index) { return is_up ? up_word(index) : gate_word(index); }
SHUNT_WEIGHT_ELEMENTS(weight)
#include "ops/matmul/eights.glsl"

const uint kTeam = 32u;
const uint kMostSubgroups = 32u;  // of a workgroup
shared vec4 xs[kMatmulNormElements / 4u];
shared float parts[kMostSubgroups][2u * kMatmulRowXRows];

// Eights of a row that one invocation asks for before it waits for the first.
const uint kAhead = 4u;

float sums[2u * kMatmulRowXRows];  // of the first weight's products with each row of x, then of the second's

vec4 norm_of(uint four) {
  uint word = (byte_offset(3u) >> 2u) + four * 4u;
  return uintBitsToFloat(uvec4(norm_word(word), norm_word(word + 1u), norm_word(word + 2u), norm_word(word + 3u)));
}

// Puts x times norm into xs, and this invocation's share of the squares of x into sums.
void keep_rows(const bool in_vectors) {
  uint fours = args.k / 4u;
  uint x_rows = kXRows;
  for (uint t = 0u; t < x_rows; ++t) {
    uint begin = row_offset(args.extents, args.x_strides, t);
    for (uint four = gl_LocalInvocationIndex; four < fours; four += gl_WorkGroupSize.x) {
      vec4 x = x_of(in_vectors, begin + four * 4u);
      sums[t] += dot(x, x);
      xs[t * fours + four] = x * norm_of(four);
    }
  }
}

// The sums over each subgroup, in its part.
void part_sums(uint count) {
  for (uint i = 0u; i < count; ++i) {
    float sum = subgroupAdd(sums[i]);
    if (subgroupElect()) parts[gl_SubgroupID][i] = sum;
  }
}

// Adds `count` eights of a row, kTeam apart, to the sums from `first_sum` on.
void add_units(uint row, uint first_sum, uint unit, const uint count) {
  uint dtype = kWeightDtype;
  uint x_rows = kXRows;
  Eight weights[kAhead];
  [[unroll]] for (uint a = 0u; a < count; ++a)
    weights[a] = eight_of(dtype, row, unit + a * kTeam);
  [[unroll]] for (uint a = 0u; a < count; ++a) {
    uvec2 fours = columns_of(dtype, unit + a * kTeam) / 4u;
    for (uint t = 0u; t < x_rows; ++t)
      sums[first_sum + t] +=
          dot(weights[a].a, xs[t * (args.k / 4u) + fours.x]) + dot(weights[a].b, xs[t * (args.k / 4u) + fours.y]);
  }
}

void add_row(uint row, uint first_sum, uint lane) {
  uint units = args.k / 8u;
  uint unit = lane;
  for (; unit + (kAhead - 1u) * kTeam < units; unit += kAhead * kTeam) add_units(row, first_sum, unit, kAhead);
  for (; unit < units; unit += kTeam) add_units(row, first_sum, unit, 1u);
}

void main() {
  uint place = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = place % kTeam;
  uint x_rows = kXRows;
  uint weights = kWeights;
  uint r = group_index() * (gl_WorkGroupSize.x / kTeam) + place / kTeam;
  uint row_bytes_before = min(r, args.m - 1u) * args.weight_row_bytes;
  uint valid = valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z;

  for (uint i = 0u; i < 2u * kMatmulRowXRows; ++i) sums[i] = 0.0;
  if ((byte_offset(1u) & 15u) == 0u)
    keep_rows(true);
  else
    keep_rows(false);
  part_sums(x_rows);
  barrier();
  float factors[kMatmulRowXRows];
  for (uint t = 0u; t < x_rows; ++t) {
    float squares = 0.0;
    for (uint s = 0u; s < gl_NumSubgroups; ++s) squares += parts[s][t];
    factors[t] = 1.0 / sqrt(squares / float(args.k) + args.epsilon);
  }

  for (uint i = 0u; i < 2u * kMatmulRowXRows; ++i) sums[i] = 0.0;
  is_up = false;
  add_row(byte_offset(2u) + row_bytes_before, 0u, lane);
  if (weights == 2u) {
    is_up = true;
    add_row(byte_offset(4u) + row_bytes_before, x_rows, lane);
  }
  barrier();  // until all have their factors
  part_sums(weights * x_rows);
  barrier();
  uint subgroups = kTeam / gl_SubgroupSize;
  uint own = place / kTeam * subgroups;
  if (lane >= x_rows || lane >= valid || r >= args.m) return;
  float total = 0.0;
  float of_up = 0.0;
  for (uint s = 0u; s < subgroups; ++s) {
    total += parts[own + s][lane];
    if (weights == 2u) of_up += parts[own + s][x_rows + lane];
  }
  total *= factors[lane];
  if (weights == 2u) total = total / (1.0 + exp(-total)) * (of_up * factors[lane]);
  put_word((byte_offset(0u) >> 2u) + row_offset(args.extents, args.out_strides, lane) + r, floatBitsToUint(total));
}
