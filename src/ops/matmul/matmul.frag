// A fragment multiplies one weight row with one row of x.
#include "ops/strided.glsl"

struct Arguments {
  uvec4 extents;  // the last: what counts the valid entries of the first
  uvec4 x_strides;  // the last: dtype of x
  uvec4 out_strides;  // the last: rows of the weight
  uvec4 residual_strides;  // the last: whether there is a residual
  uint k;
  uint weight_dtype;
  uint weight_row_bytes;
  uint x_column_stride;
};

#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)

uint offset_of(uvec4 strides, uint row) {
  uint rest = row / args.extents.z;
  return rest / args.extents.y * strides.x + rest % args.extents.y * strides.y + row % args.extents.z * strides.z;
}

// Column `column` of the row of x that begins so many elements from its start.
float x_at(uint begin, uint column) {
  return x_element(args.x_strides.w, byte_offset(1u), begin + column * args.x_column_stride);
}

// The sum over four columns, of which a word of the weight has a byte each.
float four(uint bytes, uint begin, uint column) {
  ivec4 quants = ivec4(int(bytes << 24u), int(bytes << 16u), int(bytes << 8u), int(bytes)) >> 24;
  return dot(vec4(quants), vec4(x_at(begin, column), x_at(begin, column + 1u), x_at(begin, column + 2u),
                                x_at(begin, column + 3u)));
}

float sum_q8_0(uint weight_row, uint begin) {
  float sum = 0.0;
  for (uint block = 0u; block < args.k / 32u; ++block) {
    uint byte = weight_row + block * 34u;
    uint word = byte >> 2u;
    uint bits = weight_word(word);
    // The scale is one half of a word: quants begin in its other half, or with the next word.
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

float sum_f16(uint weight_row, uint begin) {
  float sum = 0.0;
  for (uint column = 0u; column < args.k; ++column) sum += weight_f16(weight_row, column) * x_at(begin, column);
  return sum;
}

float sum_any(uint weight_row, uint begin) {
  float sum = 0.0;
  for (uint column = 0u; column < args.k; ++column)
    sum += weight_of_row(args.weight_dtype, weight_row, column) * x_at(begin, column);
  return sum;
}

void main() {
  uint index = invocation_index();
  uint m = args.out_strides.w;
  uint row = index / m;
  uint r = index % m;
  if (row >= valid_rows(args.extents.x, args.extents.w) * args.extents.y * args.extents.z) return;
  uint weight_row = byte_offset(2u) + r * args.weight_row_bytes;
  uint begin = offset_of(args.x_strides, row);
  float total;
  if (args.weight_dtype == Q8_0)
    total = sum_q8_0(weight_row, begin);
  else if (args.weight_dtype == F16)
    total = sum_f16(weight_row, begin);
  else
    total = sum_any(weight_row, begin);
  if (args.residual_strides.w != 0u)
    total += residual_element(F32, byte_offset(3u), offset_of(args.residual_strides, row) + r);
  store(F32, index, index + 1u, vec2(total, 0.0));
}
