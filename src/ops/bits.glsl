// Shared by kernels that move elements of any plain dtype, including 8-bit ones, as raw bits. Needs kernel.glsl.
uint element_bytes(uint dtype) { return dtype == I8 ? 1u : is_half(dtype) ? 2u : 4u; }

// Declares an input and a function for its elements' bits. `offset` is where the tensor begins, in bytes.
#define SHUNT_BITS(number, name)                                        \
  SHUNT_WORDS(number, name)                                             \
  uint name##_bits(uint dtype, uint offset, uint index) {               \
    uint each = element_bytes(dtype);                                   \
    uint byte = offset + index * each;                                  \
    uint word = name##_word(byte >> 2u);                                \
    if (each == 4u) return word;                                        \
    return word >> ((byte & 3u) * 8u) & (each == 1u ? 0xFFu : 0xFFFFu); \
  }

// Defined by the kernel: returns the bits of element `index` of the contiguous result.
uint result_bits(uint index);

// Writes this invocation's word of a result with `end` valid elements.
void store_word_of_bits(uint dtype, uint end) {
  uint each = element_bytes(dtype);
  uint first = invocation_index() * (4u / each);
  if (first >= end) return;
  uint bits = 0u;
  uint mask = 0u;
  for (uint i = 0u; i < 4u / each && first + i < end; ++i) {
    uint shift = i * each * 8u;
    bits |= result_bits(first + i) << shift;
    mask |= (each == 4u ? 0xFFFFFFFFu : (1u << (each * 8u)) - 1u) << shift;
  }
  uint word = (byte_offset(0u) >> 2u) + invocation_index();
  if (mask != 0xFFFFFFFFu) bits |= word_before(word) & ~mask;
  put_word(word, bits);
}
