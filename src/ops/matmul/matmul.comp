// A workgroup multiplies one weight row with up to four rows of x.
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

const uint kRows = 4u;
shared vec4 sums[kGroup];

uint offset_of(uvec4 strides, uint row) {
  uint rest = row / args.extents.z;
  return rest / args.extents.y * strides.x + rest % args.extents.y * strides.y + row % args.extents.z * strides.z;
}

float x_f32(uint index) { return uintBitsToFloat(x_word((byte_offset(1u) >> 2u) + index)); }

#define SUM(w, x)                                                    \
  for (uint column = lane; column < end_column; column += kGroup) { \
    float factor = w;                                                \
    for (uint i = 0u; i < rows; ++i) sum[i] += factor * x;           \
  }

void main() {
  uint m = args.out_strides.w;
  uint r = group_index() % m;
  uint first = group_index() / m * kRows;
  uint end = valid_rows(args.extents.x, args.extents.w) * args.extents.y * args.extents.z;
  uint lane = gl_LocalInvocationID.x;
  uint rows = first < end ? min(kRows, end - first) : 0u;
  uint begins[kRows];
  for (uint i = 0u; i < kRows; ++i) begins[i] = offset_of(args.x_strides, first + (i < rows ? i : 0u));
  vec4 sum = vec4(0.0);
  uint weight_row = byte_offset(2u) + r * args.weight_row_bytes;
  uint end_column = rows > 0u ? args.k : 0u;
  // The dtypes are chosen before the loops: drivers that compute on the CPU run both sides of a branch.
  if (args.x_strides.w == F32 && args.weight_dtype == F16) {
    SUM(weight_f16(weight_row, column), x_f32(begins[i] + column * args.x_column_stride))
  } else if (args.x_strides.w == F32 && args.weight_dtype == Q8_0) {
    SUM(weight_q8_0(weight_row, column), x_f32(begins[i] + column * args.x_column_stride))
  } else {
    SUM(weight_of_row(args.weight_dtype, weight_row, column),
        x_element(args.x_strides.w, byte_offset(1u), begins[i] + column * args.x_column_stride))
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
  if (args.residual_strides.w != 0u)
    total += residual_element(F32, byte_offset(3u), offset_of(args.residual_strides, row) + r);
  uint at = offset_of(args.out_strides, row) + r;
  store(F32, at, at + 1u, vec2(total, 0.0));
}
