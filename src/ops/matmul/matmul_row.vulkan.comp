// Few rows of x times a weight, as generation has them: what counts is how fast the weight is read. A team of 32
// invocations multiplies one or two rows of the weight with all rows of x.
#include "ops/vulkan.glsl"
SHUNT_EXTENSION(GL_KHR_shader_subgroup_basic)
SHUNT_EXTENSION(GL_KHR_shader_subgroup_arithmetic)
SHUNT_EXTENSION(GL_EXT_control_flow_attributes)
#include "ops/matmul/matmul_args.h"

#define Arguments MatmulArgs
#define SHUNT_GROUP_SIZE_ID 3
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;
layout(constant_id = 1) const uint kXRows = 1u;       // at most kMatmulRowXRows
layout(constant_id = 2) const uint kRowsOfTeam = 1u;  // 1 or 2

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)
#include "ops/matmul/eights.glsl"

const uint kTeam = 32u;
const uint kMostSubgroups = 32u;  // of a workgroup
shared float parts[kMostSubgroups][2u * kMatmulRowXRows];

// Eights of a row that one invocation asks for before it waits for the first.
const uint kAhead = 4u;

float sums[2u * kMatmulRowXRows];
uint begins[kMatmulRowXRows];  // of the rows of x

// Adds `count` eights of each row of the team, kTeam apart. What is asked for first stands in no branch: a device waits
// at the end of each for what it reads.
void add_units(const bool in_vectors, uint first, uint unit, const uint count) {
  uint dtype = kWeightDtype;
  uint x_rows = kXRows;
  uint rows = kRowsOfTeam;
  for (uint r = 0u; r < rows; ++r) {
    uint row = byte_offset(2u) + min(first + r, args.m - 1u) * args.weight_row_bytes;
    Eight weights[kAhead];
    [[unroll]] for (uint a = 0u; a < count; ++a)
      weights[a] = eight_of(dtype, row, unit + a * kTeam);
    [[unroll]] for (uint a = 0u; a < count; ++a) {
      uvec2 columns = columns_of(dtype, unit + a * kTeam);
      for (uint t = 0u; t < x_rows; ++t)
        sums[r * kMatmulRowXRows + t] += dot(weights[a].a, x_of(in_vectors, begins[t] + columns.x)) +
                                         dot(weights[a].b, x_of(in_vectors, begins[t] + columns.y));
    }
  }
}

void add_row(const bool in_vectors, uint first, uint lane) {
  uint units = args.k / 8u;
  uint unit = lane;
  for (; unit + (kAhead - 1u) * kTeam < units; unit += kAhead * kTeam) add_units(in_vectors, first, unit, kAhead);
  for (; unit < units; unit += kTeam) add_units(in_vectors, first, unit, 1u);
}

void main() {
  uint place = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = place % kTeam;
  uint x_rows = kXRows;
  uint rows = kRowsOfTeam;
  uint first = (group_index() * (gl_WorkGroupSize.x / kTeam) + place / kTeam) * rows;
  uint valid = valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z;
  for (uint t = 0u; t < x_rows; ++t) begins[t] = row_offset(args.extents, args.x_strides, t);
  for (uint i = 0u; i < 2u * kMatmulRowXRows; ++i) sums[i] = 0.0;
  if ((byte_offset(1u) & 15u) == 0u)
    add_row(true, first, lane);
  else
    add_row(false, first, lane);

  // Subgroups are no larger than a team; smaller ones meet in shared memory.
  for (uint r = 0u; r < rows; ++r)
    for (uint t = 0u; t < x_rows; ++t) {
      float sum = subgroupAdd(sums[r * kMatmulRowXRows + t]);
      sums[r * kMatmulRowXRows + t] = sum;
      if (subgroupElect()) parts[gl_SubgroupID][r * kMatmulRowXRows + t] = sum;
    }
  barrier();
  uint subgroups = kTeam / gl_SubgroupSize;
  uint own = place / kTeam * subgroups;
  for (uint i = lane; i < rows * x_rows; i += kTeam) {
    uint r = i / x_rows;
    uint t = i % x_rows;
    if (first + r >= args.m || t >= valid) continue;
    float total = 0.0;
    for (uint s = 0u; s < subgroups; ++s) total += parts[own + s][r * kMatmulRowXRows + t];
    if (args.has_residual != 0u)
      total += residual_element(F32, byte_offset(3u), row_offset(args.extents, args.residual_strides, t) + first + r);
    put_word((byte_offset(0u) >> 2u) + row_offset(args.extents, args.out_strides, t) + first + r,
             floatBitsToUint(total));
  }
}
