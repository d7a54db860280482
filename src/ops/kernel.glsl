// The prelude of every GLSL kernel: its bindings and how it reads and writes elements. A FAMILY.comp includes
// FAMILY_args.h, defines `Arguments` as the struct of that header, includes this file, then declares its buffers.
//
//   binding 0  uniform block: the byte offset of each operand in its binding (output, then inputs), and the family's
//              arguments; constant for a program
//   binding 1  uniform block: Parameters (parameters.h), written before each submission
//   binding 2  the output; 3 and up: the inputs, then the numbers of ShaderKernel::constants (shader.h)
// Workgroups are one-dimensional and have 64 invocations. A Vulkan-only kernel may choose another size: it defines
// SHUNT_GROUP_SIZE_ID as the number of the specialization constant that holds it. There are as many workgroups as the
// prepared capacity needs; tails are masked. With SHUNT_FRAGMENT, SHUNT_FIRST_PASS or SHUNT_POINTS defined, there are
// no workgroups, and textures replace buffers (texture.glsl).
// Kernels go through the C preprocessor first, so that they can expand the tables; args.h says how they share headers.
#include "ops/strided_args.h"

#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) const uint name = uint(__COUNTER__);
#include "ops/dtypes.def"

const uint kGroup = 64u;

layout(std140, binding = 0) uniform Call {
  uvec4 byte_offsets[2];
  Arguments args;
};
layout(std140, binding = 1) uniform Step { Parameters parameters; };

uint byte_offset(uint operand) { return byte_offsets[operand >> 2u][operand & 3u]; }

// Defines invocation_index(), SHUNT_WORDS, put_word() and word_before(). SHUNT_WORDS declares the words of an input as
// name_word(index); put_word() writes a word of the output, and word_before() returns what it holds.
#if defined(SHUNT_FRAGMENT) || defined(SHUNT_FIRST_PASS) || defined(SHUNT_POINTS)
#include "ops/texture.glsl"
#else
#ifdef SHUNT_GROUP_SIZE_ID
layout(local_size_x_id = SHUNT_GROUP_SIZE_ID) in;
#else
layout(local_size_x = 64, local_size_y = 1, local_size_z = 1) in;
#endif
uint group_index() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }
uint invocation_index() { return group_index() * kGroup + gl_LocalInvocationID.x; }

#define SHUNT_WORDS(number, name)                                                          \
  layout(std430, binding = number) readonly buffer name##_buffer { uint name##_words[]; }; \
  uint name##_word(uint index) { return name##_words[index]; }

layout(std430, binding = 2) buffer output_buffer { uint output_words[]; };
void put_word(uint word, uint bits) { output_words[word] = bits; }
uint word_before(uint word) { return output_words[word]; }
#endif

// The same as in parameters.h.
uint valid_rows(uint capacity, uint extent) {
  if (extent == 0u) return capacity;
  return min(capacity, extent == 1u ? parameters.tokens : parameters.outputs);
}

// The same as in strided_args.h.
uint valid_row_count(StridedTensor x) {
  if (x.entries == 0u) return 0u;
  return x.extents.x * x.extents.y * x.extents.z / x.entries * valid_rows(x.entries, x.extent);
}
uint row_offset(uvec4 extents, uvec4 strides, uint row) {
  uint third = row % extents.z;
  uint outer = row / extents.z;
  return third * strides.z + outer % extents.y * strides.y + outer / extents.y * strides.x;
}

bool is_half(uint dtype) { return dtype == F16 || dtype == BF16; }
// The number of elements of a contiguous tensor that share a word.
uint per_word(uint dtype) { return is_half(dtype) ? 2u : 1u; }

float widen(uint dtype, uint bits) {
  if (dtype == F16) return unpackHalf2x16(bits).x;
  if (dtype == BF16) return uintBitsToFloat(bits << 16u);
  return dtype == I32 ? float(int(bits)) : uintBitsToFloat(bits);
}

// Rounds to nearest, ties to even; how packHalf2x16 rounds is up to the implementation.
uint to_f16(float value) {
  uint bits = floatBitsToUint(value);
  uint sign = (bits >> 16u) & 0x8000u;
  uint size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) return sign | 0x7E00u;
  if (size >= 0x47800000u) return sign | 0x7C00u;
  if (size < 0x33000000u) return sign;
  uint exponent = size >> 23u;
  uint shift = exponent < 113u ? 126u - exponent : 13u;
  uint mantissa = exponent < 113u ? (size & 0x7FFFFFu) | 0x800000u : size - (112u << 23u);
  uint kept = mantissa >> shift;
  uint rest = mantissa & ((1u << shift) - 1u);
  uint halfway = 1u << (shift - 1u);
  if (rest > halfway || (rest == halfway && (kept & 1u) != 0u)) kept += 1u;
  return sign | kept;
}
uint to_bf16(float value) {
  uint bits = floatBitsToUint(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (bits >> 16u) | 0x40u;
  return (bits + 0x7FFFu + ((bits >> 16u) & 1u)) >> 16u;
}
// Returns the bits of an element, in the lower part of the word.
uint narrow(uint dtype, float value) {
  if (dtype == F16) return to_f16(value);
  if (dtype == BF16) return to_bf16(value);
  return floatBitsToUint(value);
}

// Returns the bytes of `elements` elements, which must be whole blocks.
uint row_bytes(uint dtype, uint elements) {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) \
  if (dtype == name) return elements / block_elements##u * block_bytes##u;
#include "ops/dtypes.def"
  return 0u;
}

// Declares an input and the functions that read its elements. `offset` is where the tensor begins, in bytes.
#define SHUNT_INPUT(number, name) \
  SHUNT_WORDS(number, name)       \
  SHUNT_ELEMENTS(name)
// The same if name_word() is already declared.
#define SHUNT_ELEMENTS(name)                                                                      \
  uint name##_half(uint byte) { return name##_word(byte >> 2u) >> ((byte & 2u) * 8u) & 0xFFFFu; } \
  int name##_int(uint offset, uint index) { return int(name##_word((offset >> 2u) + index)); }    \
  float name##_element(uint dtype, uint offset, uint index) {                                     \
    if (is_half(dtype)) return widen(dtype, name##_half(offset + 2u * index));                    \
    return widen(dtype, name##_word((offset >> 2u) + index));                                     \
  }

#include "ops/quantize/blocks.glsl"

// Writes element `first` of the contiguous result and, with two to a word, element first + 1 if that is below `end`.
// REQUIRES: `first` is a multiple of per_word(dtype).
void store(uint dtype, uint first, uint end, vec2 values) {
  uint word = (byte_offset(0u) >> 2u) + first / per_word(dtype);
  if (!is_half(dtype)) {
    put_word(word, floatBitsToUint(values.x));
  } else if (first + 1u < end) {
    put_word(word, narrow(dtype, values.x) | narrow(dtype, values.y) << 16u);
  } else {
    put_word(word, (word_before(word) & 0xFFFF0000u) | narrow(dtype, values.x));
  }
}
