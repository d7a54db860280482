// What kernel.glsl gives a kernel in WebGL2, which has neither compute shaders nor buffers for them. Memory is textures
// of 32-bit words, kRowWords to a row, and an invocation writes one word:
//
//   SHUNT_FRAGMENT  invocation i is the fragment of word i of the result. What is drawn to has the result's columns,
//   but
//                   begins with its first row. It keeps its word where the kernel does not write.
//   SHUNT_FIRST_PASS  the same for the words of a first pass (shader.h), which have a texture of their own: for the
//   kernel
//                   that of binding 9, and the offset of that operand is 1; 0 where it must do without.
//   SHUNT_POINTS    invocation i is a point that lands on the word that the kernel writes, or nowhere.
// The texture of binding n is called texture_n; a kernel's main is called from here.
const uint kRowWords = 4096u;

ivec2 texel_of(uint word) { return ivec2(word % kRowWords, word / kRowWords); }
#define SHUNT_WORDS(number, name)                               \
  layout(binding = number) uniform usampler2D texture_##number; \
  uint name##_word(uint index) { return texelFetch(texture_##number, texel_of(index), 0).x; }

void kernel_main();

#if defined(SHUNT_FIRST_PASS)
layout(location = 0) out uint own_word;

uint invocation_index() { return uint(gl_FragCoord.y) * kRowWords + uint(gl_FragCoord.x); }
void put_word(uint word, uint bits) { own_word = bits; }
uint word_before(uint word) { return 0u; }

void main() {
  own_word = 0u;
  kernel_main();
}
#elif defined(SHUNT_FRAGMENT)
layout(location = 0) out uint own_word;
SHUNT_WORDS(2, output)

// Fragments beside the result have numbers beyond its end.
uint invocation_index() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  return at.y * kRowWords + at.x - (byte_offset(0u) >> 2u) % kRowWords;
}
// REQUIRES for both: the fragment's own word.
void put_word(uint word, uint bits) { own_word = bits; }
uint word_before(uint word) { return output_word(word); }

void main() {
  own_word = word_before((byte_offset(0u) >> 2u) + invocation_index());
  kernel_main();
}
#else
layout(location = 0) flat out uint point_word;

uint invocation_index() { return uint(gl_VertexIndex); }
void put_word(uint word, uint bits) {
  // Where state is bound as an input it would have its offset: here it has the rows of what is drawn to.
  vec2 size = vec2(float(kRowWords), float(byte_offset(1u)));
  gl_Position = vec4((vec2(texel_of(word)) + 0.5) / size * 2.0 - 1.0, 0.0, 1.0);
  point_word = bits;
}
// REQUIRES: never called; points write whole words.
uint word_before(uint word) { return 0u; }

void main() {
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = 1.0;
  point_word = 0u;
  kernel_main();
}
#endif
#define main kernel_main
