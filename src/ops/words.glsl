// What kernels share whose invocations compute one word of the result each. Needs kernel.glsl.

// The kernel's: element `index` of the contiguous result.
float element(uint index);

// Writes this invocation's word of a result of so many valid elements. A loop, as compilers copy what they call.
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
