#include "ops/custom/custom.h"

namespace shunt {
namespace {

// Reads the block that call_block() and CustomArgs write. Users see this text, comments included.
constexpr std::string_view kPrelude = R"glsl(
// Declares what a custom kernel may use besides plain GLSL:
//   SHUNT_INPUT(0, F32, x)     declares input 0. x(index) reads an element, x_count() returns the number of elements, and
//                              x_extent(axis) the extent of an axis, 0 being the outermost. F32, F16 and BF16 are read as
//                              float, I32 and I8 as int, U32 as uint. For any other dtype, BYTES reads single bytes.
//   SHUNT_OUTPUT(F32, y)       declares the result. put_y(index, value) writes an element of F32, I32 or U32. For F16 and
//                              BF16, put_y(i, vec2) writes the two elements 2 i and 2 i + 1.
//   SHUNT_ARGUMENTS(float slope; uint width;)   declares the arguments of the use, in std140 layout
//   shunt_item(), shunt_items()                 return this invocation's number, and the number of items to compute
//   shunt_group()                               returns this workgroup's number
// Invocations past the last item must write nothing.
layout(std140, set = 0, binding = 0) uniform shunt_call_block {
  uvec4 shunt_offsets[2];  // of the result and of each input in its buffer, in bytes
  uvec4 shunt_extents[8];  // of the result and of each input
  uvec4 shunt_work;        // items; what counts the valid rows (0 nothing, 1 tokens, 2 outputs); rows of the result
};
layout(std140, set = 0, binding = 1) uniform shunt_step_block {
  uvec4 shunt_step;  // valid tokens and outputs of this submission
};

uint shunt_offset(uint operand) { return shunt_offsets[operand >> 2u][operand & 3u]; }
uint shunt_count(uint operand) {
  uvec4 extents = shunt_extents[operand];
  return extents.x * extents.y * extents.z * extents.w;
}
uint shunt_items() {
  if (shunt_work.y == 0u || shunt_work.z == 0u) return shunt_work.x;
  return shunt_work.x / shunt_work.z * min(shunt_work.z, shunt_work.y == 1u ? shunt_step.x : shunt_step.y);
}
uint shunt_bf16(float value) {
  uint bits = floatBitsToUint(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (bits >> 16u) | 0x40u;
  return (bits + 0x7FFFu + ((bits >> 16u) & 1u)) >> 16u;
}
#define shunt_group() (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)
#define shunt_item() \
  (shunt_group() * (gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z) + gl_LocalInvocationIndex)

#define SHUNT_ARGUMENTS(fields)                                           \
  layout(std140, set = 0, binding = 0) uniform shunt_arguments_block {    \
    uvec4 shunt_before_arguments[11];                                     \
    fields                                                                \
  };

#define SHUNT_INPUT(number, dtype, name)                                                                \
  layout(std430, set = 0, binding = 3 + number) readonly buffer name##_buffer { uint name##_words[]; }; \
  uint name##_offset() { return shunt_offset(1u + uint(number)); }                                      \
  uint name##_count() { return shunt_count(1u + uint(number)); }                                        \
  uint name##_extent(uint axis) { return shunt_extents[1u + uint(number)][axis]; }                      \
  uint name##_byte(uint index) {                                                                        \
    uint at = name##_offset() + index;                                                                  \
    return bitfieldExtract(name##_words[at >> 2u], int(at & 3u) * 8, 8);                                \
  }                                                                                                     \
  uint name##_half(uint index) {                                                                        \
    uint at = name##_offset() + 2u * index;                                                             \
    return bitfieldExtract(name##_words[at >> 2u], int(at & 2u) * 8, 16);                               \
  }                                                                                                     \
  uint name##_word(uint index) { return name##_words[(name##_offset() >> 2u) + index]; }                \
  SHUNT_READ_##dtype(name)
#define SHUNT_READ_F32(name) float name(uint index) { return uintBitsToFloat(name##_word(index)); }
#define SHUNT_READ_I32(name) int name(uint index) { return int(name##_word(index)); }
#define SHUNT_READ_U32(name) uint name(uint index) { return name##_word(index); }
#define SHUNT_READ_F16(name) float name(uint index) { return unpackHalf2x16(name##_half(index)).x; }
#define SHUNT_READ_BF16(name) float name(uint index) { return uintBitsToFloat(name##_half(index) << 16u); }
#define SHUNT_READ_I8(name) int name(uint index) { return bitfieldExtract(int(name##_byte(index)), 0, 8); }
#define SHUNT_READ_BYTES(name) uint name(uint index) { return name##_byte(index); }

#define SHUNT_OUTPUT(dtype, name)                                                             \
  layout(std430, set = 0, binding = 2) buffer name##_buffer { uint name##_words[]; };         \
  uint name##_count() { return shunt_count(0u); }                                             \
  uint name##_extent(uint axis) { return shunt_extents[0][axis]; }                            \
  void name##_put_word(uint index, uint bits) { name##_words[(shunt_offset(0u) >> 2u) + index] = bits; } \
  void name##_put_halves(uint pair, uint low, uint high) {                                    \
    uint at = (shunt_offset(0u) >> 2u) + pair;                                                \
    if (2u * pair + 1u >= name##_count()) high = name##_words[at] >> 16u;                     \
    name##_words[at] = low | high << 16u;                                                     \
  }                                                                                           \
  SHUNT_WRITE_##dtype(name)
#define SHUNT_WRITE_F32(name) \
  void put_##name(uint index, float value) { name##_put_word(index, floatBitsToUint(value)); }
#define SHUNT_WRITE_I32(name) void put_##name(uint index, int value) { name##_put_word(index, uint(value)); }
#define SHUNT_WRITE_U32(name) void put_##name(uint index, uint value) { name##_put_word(index, value); }
#define SHUNT_WRITE_F16(name)                                          \
  void put_##name(uint pair, vec2 values) {                            \
    uint bits = packHalf2x16(values);                                  \
    name##_put_halves(pair, bits & 0xFFFFu, bits >> 16u);              \
  }
#define SHUNT_WRITE_BF16(name) \
  void put_##name(uint pair, vec2 values) { name##_put_halves(pair, shunt_bf16(values.x), shunt_bf16(values.y)); }
)glsl";

}  // namespace

std::string_view kernel_prelude() { return kPrelude.substr(1); }

}  // namespace shunt
