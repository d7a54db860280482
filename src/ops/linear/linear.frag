// A fragment multiplies one weight row by one row of x.
#include "ops/linear/linear_args.h"

#define Arguments LinearArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)

// Returns an element of the row of x that begins `begin` elements from the start of x.
float x_at(uint begin, uint column) {
  return x_element(args.x_dtype, byte_offset(1u), begin + column * args.x_strides.w);
}

// Returns the sum over four columns whose weights are the bytes of one word.
float four(uint bytes, uint begin, uint column) {
  ivec4 quants = ivec4(int(bytes << 24u), int(bytes << 16u), int(bytes << 8u), int(bytes)) >> 24;
  return dot(vec4(quants),
             vec4(x_at(begin, column), x_at(begin, column + 1u), x_at(begin, column + 2u), x_at(begin, column + 3u)));
}

float sum_q8_0(uint weight_row, uint begin) {
  float sum = 0.0;
  for (uint block = 0u; block < args.k / 32u; ++block) {
    uint byte = weight_row + block * 34u;
    uint word = byte >> 2u;
    uint bits = weight_word(word);
    // The scale is half a word. The quants begin in the other half of that word or with the next word.
    bool apart = (byte & 2u) == 0u;
    float scale = unpackHalf2x16(apart ? bits & 0xFFFFu : bits >> 16u).x;
    float total = 0.0;
    for (uint i = 0u; i < 8u; ++i) {
      uint next = weight_word(word + 1u + i);
      total += four(apart ? bits >> 16u | next << 16u : next, begin, block * 32u + i * 4u);
      bits = next;
    }
    sum += scale * total;
  }
  return sum;
}

float sum_any(uint weight_row, uint begin) {
  uint dtype = kWeightDtype;
  float sum = 0.0;
  for (uint column = 0u; column < args.k; ++column)
    sum += weight_of_row(dtype, weight_row, column) * x_at(begin, column);
  return sum;
}

void main() {
  uint index = invocation_index();
  uint row = index / args.m;
  uint r = index % args.m;
  if (row >= valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z) return;
  uint weight_row = byte_offset(2u) + r * args.weight_row_bytes;
  uint begin = row_offset(args.extents, args.x_strides, row);
  uint weight_dtype = kWeightDtype;
  float total;
  if (weight_dtype == Q8_0)
    total = sum_q8_0(weight_row, begin);
  else
    total = sum_any(weight_row, begin);
  if (args.has_residual != 0u)
    total += residual_element(F32, byte_offset(3u), row_offset(args.extents, args.residual_strides, row) + r);
  store(F32, index, index + 1u, vec2(total, 0.0));
}
