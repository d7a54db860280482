// Copies memory unchanged. An invocation moves four words, in one access if x and the result are both 16-byte aligned.
#include "ops/copy/copy_args.h"

#define Arguments CopyArgs
#include "ops/kernel.glsl"

SHUNT_WORDS(3, x)
layout(std430, binding = 2) writeonly buffer output_four_buffer { uvec4 output_fours[]; };
layout(std430, binding = 3) readonly buffer x_four_buffer { uvec4 x_fours[]; };

void main() {
  uint words = valid_row_count(args.x) * args.words_of_row;
  uint first = invocation_index() * 4u;
  if (first >= words) return;
  if (((byte_offset(0u) | byte_offset(1u)) & 15u) == 0u && first + 4u <= words) {
    output_fours[(byte_offset(0u) + first * 4u) >> 4u] = x_fours[(byte_offset(1u) + first * 4u) >> 4u];
    return;
  }
  for (uint word = first; word < min(first + 4u, words); ++word)
    put_word((byte_offset(0u) >> 2u) + word, x_word((byte_offset(1u) >> 2u) + word));
}
