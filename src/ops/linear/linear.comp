// A workgroup multiplies one weight row by up to four rows of x.
#include "ops/linear/linear_args.h"

#define Arguments LinearArgs
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)

shared vec4 sums[kGroup];

// Loads an element of x with one read for any dtype, because drivers that compute on the CPU run both sides of a
// branch.
float x_at(uint index) {
  uint byte = byte_offset(1u) + (is_half(args.x_dtype) ? 2u : 4u) * index;
  return widen(args.x_dtype, x_word(byte >> 2u) >> ((byte & 2u) * 8u));
}

#define SUM(element)                                                                                 \
  for (uint column = lane; column < end_column; column += kGroup) {                                  \
    float factor = element;                                                                          \
    for (uint i = 0u; i < rows; ++i) sum[i] += factor * x_at(begins[i] + column * args.x_strides.w); \
  }

void main() {
  uint r = group_index() % args.m;
  uint first = group_index() / args.m * kLinearGroupRows;
  uint end = valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z;
  uint lane = gl_LocalInvocationID.x;
  uint rows = first < end ? min(kLinearGroupRows, end - first) : 0u;
  uint begins[kLinearGroupRows];
  for (uint i = 0u; i < kLinearGroupRows; ++i)
    begins[i] = row_offset(args.extents, args.x_strides, first + (i < rows ? i : 0u));
  vec4 sum = vec4(0.0);
  uint weight_row = byte_offset(2u) + r * args.weight_row_bytes;
  uint end_column = rows > 0u ? args.k : 0u;
  uint weight_dtype = kWeightDtype;
  // Drivers that do not fold specialization constants choose a loop here instead of a loader inside the loop.
  if (weight_dtype == F16) {
    SUM(weight_f16(weight_row + 2u * column))
  } else if (weight_dtype == Q8_0) {
    SUM(weight_q8_0(weight_row, column))
  } else {
    SUM(weight_of_row(weight_dtype, weight_row, column))
  }
  sums[lane] = sum;
  barrier();
  for (uint width = kGroup / 2u; width > 0u; width /= 2u) {
    if (lane < width) sums[lane] += sums[lane + width];
    barrier();
  }
  if (lane >= rows) return;
  float total = sums[0][lane];
  uint row = first + lane;
  if (args.has_residual != 0u)
    total += residual_element(F32, byte_offset(3u), row_offset(args.extents, args.residual_strides, row) + r);
  uint at = row_offset(args.extents, args.out_strides, row) + r;
  store(F32, at, at + 1u, vec2(total, 0.0));
}
