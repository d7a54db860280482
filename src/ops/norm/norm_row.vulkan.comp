// A workgroup of 256 normalizes one F32 row, which its invocations keep, four elements at a time.
#include "ops/vulkan.glsl"
SHUNT_EXTENSION(GL_KHR_shader_subgroup_basic)
SHUNT_EXTENSION(GL_KHR_shader_subgroup_arithmetic)
#include "ops/norm/norm_args.h"

#define Arguments NormArgs
#define SHUNT_GROUP_SIZE_ID 3
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kFoursEach = 1u;  // per invocation, at most kNormRowFours

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, weight)

const uint kMostSubgroups = 64u;
shared float parts[kMostSubgroups];

// Returns elements `at` to `at` + 3 from the start of a tensor.
vec4 x_four(uint at) {
  uint word = (byte_offset(1u) >> 2u) + at;
  return uintBitsToFloat(uvec4(x_word(word), x_word(word + 1u), x_word(word + 2u), x_word(word + 3u)));
}
vec4 weight_four(uint at) {
  uint word = (byte_offset(2u) >> 2u) + at;
  return uintBitsToFloat(
      uvec4(weight_word(word), weight_word(word + 1u), weight_word(word + 2u), weight_word(word + 3u)));
}

void main() {
  uint row = group_index();
  if (row >= valid_row_count(args.x)) return;
  uint columns = args.x.extents.w;
  uint each = kFoursEach;
  uint step = gl_WorkGroupSize.x * 4u;
  uint first = gl_LocalInvocationIndex * 4u;
  uint begin = row_offset(args.x.extents, args.x.strides, row);
  vec4 own[kNormRowFours];
  float sum = 0.0;
  for (uint i = 0u; i < each; ++i) {
    uint column = first + i * step;
    own[i] = column < columns ? x_four(begin + column) : vec4(0.0);
    sum += dot(own[i], own[i]);
  }
  float sum_here = subgroupAdd(sum);
  if (subgroupElect()) parts[gl_SubgroupID] = sum_here;
  barrier();
  sum = 0.0;
  for (uint i = 0u; i < gl_NumSubgroups; ++i) sum += parts[i];
  float factor = 1.0 / sqrt(sum / float(columns) + args.epsilon);
  uint weight_begin = row_offset(args.x.extents, args.weight_strides, row);
  for (uint i = 0u; i < each; ++i) {
    uint column = first + i * step;
    if (column >= columns) continue;
    vec4 value = own[i] * factor;
    if (args.has_weight != 0u) value *= weight_four(weight_begin + column);
    uint at = (byte_offset(0u) >> 2u) + row * columns + column;
    for (uint j = 0u; j < 4u; ++j) put_word(at + j, floatBitsToUint(value[j]));
  }
}
