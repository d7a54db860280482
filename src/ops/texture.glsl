// The WebGL2 part of kernel.glsl. WebGL2 has neither compute shaders nor storage buffers, so memory is textures of
// 32-bit words, kRowWords to a row, and an invocation writes one word:
//
//   SHUNT_FRAGMENT    Invocation i is the fragment of word i of the result. The render target has the columns of the
//                     result's texture, but begins with the result's first row. A fragment that the kernel does not
//                     write keeps its word.
//   SHUNT_FIRST_PASS  The same for the words of a first pass (shader.h), which have their own texture. The kernel reads
//                     it at binding 9; the byte offset of that operand is 1, or 0 if there is no first pass.
//   SHUNT_POINTS      Invocation i is a point that lands on the word that the kernel writes, or nowhere.
// The texture of binding n is called texture_n. This file defines main(), which calls the kernel's.
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

// Fragments outside of the result get numbers beyond its end.
uint invocation_index() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  return at.y * kRowWords + at.x - (byte_offset(0u) >> 2u) % kRowWords;
}
// REQUIRES (both): `word` is the fragment's own.
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
  // The state is not bound as an input, so its offset carries the number of rows of the render target.
  vec2 size = vec2(float(kRowWords), float(byte_offset(1u)));
  gl_Position = vec4((vec2(texel_of(word)) + 0.5) / size * 2.0 - 1.0, 0.0, 1.0);
  point_word = bits;
}
// REQUIRES: it is not called; points write whole words.
uint word_before(uint word) { return 0u; }

void main() {
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = 1.0;
  point_word = 0u;
  kernel_main();
}
#endif
#define main kernel_main
