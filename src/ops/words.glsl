// Shared by kernels whose invocations each compute one word of the result. Needs kernel.glsl.

// Defined by the kernel: returns element `index` of the contiguous result.
float element(uint index);

// Writes this invocation's word of a result with `end` valid elements. It loops, because compilers inline each call.
void store_word(uint dtype, uint end) {
  uint first = invocation_index() * per_word(dtype);
  if (first >= end) return;
  float low = 0.0;
  float high = 0.0;
  for (uint i = 0u; i < per_word(dtype) && first + i < end; ++i) {
    float value = element(first + i);
    if (i == 0u)
      low = value;
    else
      high = value;
  }
  store(dtype, first, end, vec2(low, high));
}
