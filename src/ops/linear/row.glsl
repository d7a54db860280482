// Multiplies few rows of x by one or two weights, as in decode, where the speed of reading the weights matters. A
// workgroup multiplies one row of each weight by all rows of x. If SHUNT_NORMALIZED is defined, it also sums the
// squares of x. They give each row of x a factor, which is applied to its products at the end.
#include "ops/vulkan.glsl"
SHUNT_EXTENSION(GL_KHR_shader_subgroup_basic)
SHUNT_EXTENSION(GL_KHR_shader_subgroup_arithmetic)
SHUNT_EXTENSION(GL_EXT_control_flow_attributes)
#include "ops/linear/linear_args.h"

#define Arguments LinearArgs
#define SHUNT_GROUP_SIZE_ID 3
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;
layout(constant_id = 1) const uint kXRows = 1u;    // at most kLinearRowXRows
layout(constant_id = 2) const uint kWeights = 1u;  // 1, or 2: gate and up

SHUNT_INPUT(3, x)
#ifdef SHUNT_NORMALIZED
SHUNT_WORDS(4, gate)
SHUNT_WORDS(5, norm)
SHUNT_WORDS(6, up)
layout(std430, binding = 5) readonly buffer norm_vector_buffer { vec4 norm_vectors[]; };
bool is_up = false;
uint weight_word(uint index) { return is_up ? up_word(index) : gate_word(index); }
SHUNT_WEIGHT_ELEMENTS(weight)
const uint kSquares = 1u;
#else
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)
const uint kSquares = 0u;
#endif
#include "ops/linear/eights.glsl"

const uint kLeastSubgroup = 8u;
const uint kSums = (kWeights + kSquares) * kXRows;
shared float parts[gl_WorkGroupSize.x / kLeastSubgroup][kSums];  // per subgroup

// Eights of a row that an invocation loads before it waits for the first.
const uint kAhead = 4u;

float sums[kSums];    // products of each weight with each row of x, then the sum of squares of each row of x
uint begins[kXRows];  // of the rows of x

// Returns four elements of norm, `at` elements from its start. REQUIRES: `at` is a multiple of 4.
#ifdef SHUNT_NORMALIZED
vec4 norm_of(const bool in_vectors, uint at) {
  if (in_vectors) return norm_vectors[(byte_offset(3u) >> 4u) + (at >> 2u)];
  uint word = (byte_offset(3u) >> 2u) + at;
  return uintBitsToFloat(uvec4(norm_word(word), norm_word(word + 1u), norm_word(word + 2u), norm_word(word + 3u)));
}
#endif

// Adds `count` eights of the row of each weight, one workgroup apart. The first loads are outside any branch, because a
// device waits for its reads at the end of each.
void add_units(const bool in_vectors, uint row_bytes_before, uint unit, const uint count) {
  uint dtype = kWeightDtype;
  uint weights = kWeights;
  uint x_rows = kXRows;
  uint apart = gl_WorkGroupSize.x;
  ScaledEight eights[kWeights][kAhead];
  [[unroll]] for (uint w = 0u; w < weights; ++w) {
#ifdef SHUNT_NORMALIZED
    is_up = w == 1u;
#endif
    uint row = byte_offset(w == 1u ? 4u : 2u) + row_bytes_before;
    [[unroll]] for (uint a = 0u; a < count; ++a)
      eights[w][a] = scaled_eight_of(dtype, row, unit + a * apart);
  }
  [[unroll]] for (uint a = 0u; a < count; ++a) {
    uvec2 columns = columns_of(dtype, unit + a * apart);
#ifdef SHUNT_NORMALIZED
    Eight norm = Eight(norm_of(in_vectors, columns.x), norm_of(in_vectors, columns.y));
#endif
    [[unroll]] for (uint t = 0u; t < x_rows; ++t) {
      Eight x = Eight(x_of(in_vectors, begins[t] + columns.x), x_of(in_vectors, begins[t] + columns.y));
#ifdef SHUNT_NORMALIZED
      sums[weights * x_rows + t] += dot(x.a, x.a) + dot(x.b, x.b);
      x = Eight(x.a * norm.a, x.b * norm.b);
#endif
      [[unroll]] for (uint w = 0u; w < weights; ++w)
        sums[w * x_rows + t] +=
            eights[w][a].scale * (dot(eights[w][a].quants.a, x.a) + dot(eights[w][a].quants.b, x.b));
    }
  }
}

void add_row(const bool in_vectors, uint row_bytes_before) {
  uint units = args.k / 8u;
  uint apart = gl_WorkGroupSize.x;
  uint unit = gl_LocalInvocationIndex;
  for (; unit + (kAhead - 1u) * apart < units; unit += kAhead * apart)
    add_units(in_vectors, row_bytes_before, unit, kAhead);
  for (; unit < units; unit += apart) add_units(in_vectors, row_bytes_before, unit, 1u);
}

// Replaces each sum by the sum over the workgroup; subgroups exchange theirs in shared memory.
void sum_over_group() {
  uint count = kSums;
  [[unroll]] for (uint i = 0u; i < count; ++i)
    sums[i] = subgroupAdd(sums[i]);
  if (gl_NumSubgroups == 1u) return;
  if (subgroupElect()) {
    for (uint i = 0u; i < count; ++i) parts[gl_SubgroupID][i] = sums[i];
  }
  barrier();
  for (uint i = 0u; i < count; ++i) {
    sums[i] = 0.0;
    for (uint s = 0u; s < gl_NumSubgroups; ++s) sums[i] += parts[s][i];
  }
}

// Returns output element (t, r). REQUIRES: the sums are complete.
float result(uint t, uint r) {
#ifdef SHUNT_NORMALIZED
  uint x_rows = kXRows;
  uint weights = kWeights;
  float factor = 1.0 / sqrt(sums[weights * x_rows + t] / float(args.k) + args.epsilon);
  float product = sums[t] * factor;
  return weights == 2u ? product / (1.0 + exp(-product)) * (sums[x_rows + t] * factor) : product;
#else
  if (args.has_residual == 0u) return sums[t];
  return sums[t] + residual_element(F32, byte_offset(3u), row_offset(args.extents, args.residual_strides, t) + r);
#endif
}

void main() {
  uint x_rows = kXRows;
  uint count = kSums;
  uint r = group_index();
  if (r >= args.m) return;
  uint valid = valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z;
  [[unroll]] for (uint t = 0u; t < x_rows; ++t)
    begins[t] = row_offset(args.extents, args.x_strides, t);
  [[unroll]] for (uint i = 0u; i < count; ++i)
    sums[i] = 0.0;
  uint offsets = byte_offset(1u);
#ifdef SHUNT_NORMALIZED
  offsets |= byte_offset(3u);
#endif
  if ((offsets & 15u) == 0u)
    add_row(true, r * args.weight_row_bytes);
  else
    add_row(false, r * args.weight_row_bytes);
  sum_over_group();
  [[unroll]] for (uint t = 0u; t < x_rows; ++t)
    if (t == gl_LocalInvocationIndex && t < valid)
      put_word((byte_offset(0u) >> 2u) + row_offset(args.extents, args.out_strides, t) + r,
               floatBitsToUint(result(t, r)));
}
