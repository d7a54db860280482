// For drivers that compute on the CPU. Each invocation multiplies one weight row by up to four rows of x, because a
// barrier costs more there than sharing within a workgroup saves. Supports only floats and Q8_0: such drivers are
// slowed by everything in a kernel, used or not.
#include "ops/linear/linear_args.h"

#define Arguments LinearArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;
layout(constant_id = 1) const uint kXDtype = 0u;
layout(constant_id = 2) const uint kXRows = 1u;  // per invocation, at most kLinearGroupRows

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)

const uint kBlock = 32u;  // of Q8_0

uint begins[kLinearGroupRows];  // of the rows of x
float sum[kLinearGroupRows];

// Adds a factor times one column of each row of x. Every element takes one read for any dtype, because such drivers run
// both sides of a branch.
void add_column(float factor, uint column) {
  uint x_dtype = kXDtype;
  uint x_rows = kXRows;
  for (uint i = 0u; i < x_rows; ++i) {
    uint byte = byte_offset(1u) + (is_half(x_dtype) ? 2u : 4u) * (begins[i] + column * args.x_strides.w);
    sum[i] += factor * widen(x_dtype, x_word(byte >> 2u) >> ((byte & 2u) * 8u));
  }
}

void main() {
  uint x_rows = kXRows;
  uint r = invocation_index() % args.m;
  uint first = invocation_index() / args.m * x_rows;
  uint end = valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z;
  if (first >= end) return;
  for (uint i = 0u; i < x_rows; ++i) {
    begins[i] = row_offset(args.extents, args.x_strides, min(first + i, end - 1u));
    sum[i] = 0.0;
  }
  uint weight_dtype = kWeightDtype;
  uint weight_row = byte_offset(2u) + r * args.weight_row_bytes;
  if (weight_dtype == Q8_0) {
    for (uint column = 0u; column < args.k; column += kBlock) {
      uint block = weight_row + column / kBlock * 34u;
      float scale = weight_f16(block);
      for (uint i = 0u; i < kBlock; ++i) add_column(scale * signed_byte(weight_byte(block + 2u + i)), column + i);
    }
  } else {
    for (uint column = 0u; column < args.k; ++column)
      add_column(weight_element(weight_dtype, weight_row, column), column);
  }
  for (uint i = 0u; i < x_rows && first + i < end; ++i) {
    uint row = first + i;
    float total = sum[i];
    if (args.has_residual != 0u)
      total += residual_element(F32, byte_offset(3u), row_offset(args.extents, args.residual_strides, row) + r);
    uint at = row_offset(args.extents, args.out_strides, row) + r;
    store(F32, at, at + 1u, vec2(total, 0.0));
  }
}
