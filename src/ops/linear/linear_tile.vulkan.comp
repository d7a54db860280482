// Multiplies many rows of x by a weight, as in prefill. A workgroup of 128 multiplies 64 rows of the weight by 64 rows
// of x, four by eight of them per invocation. Each step puts 32 columns of both into shared memory.
#include "ops/linear/linear_args.h"
#include "ops/vulkan.glsl"

#define Arguments LinearArgs
#define SHUNT_GROUP_SIZE_ID 3
#include "ops/kernel.glsl"

layout(constant_id = 0) const uint kWeightDtype = 0u;

SHUNT_INPUT(3, x)
SHUNT_WEIGHT(4, weight)
SHUNT_INPUT(5, residual)
#include "ops/linear/eights.glsl"

const uint kUnits = 4u;                         // eights of a row per step
const uint kFours = kLinearTileRows / 4u + 1u;  // fours of rows, plus one so that columns begin in different banks
shared vec4 weights[kUnits * 8u][kFours];
shared vec4 xs[kUnits * 8u][kFours];

void put_weights(uint unit, uint row, Eight eight) {
  for (uint i = 0u; i < 4u; ++i) {
    weights[unit * 8u + i][row / 4u][row % 4u] = eight.a[i];
    weights[unit * 8u + 4u + i][row / 4u][row % 4u] = eight.b[i];
  }
}
void put_xs(uint unit, uint row, vec4 a, vec4 b) {
  for (uint i = 0u; i < 4u; ++i) {
    xs[unit * 8u + i][row / 4u][row % 4u] = a[i];
    xs[unit * 8u + 4u + i][row / 4u][row % 4u] = b[i];
  }
}

void main() {
  uint dtype = kWeightDtype;
  uint lane = gl_LocalInvocationID.x;
  uint x_tiles = (args.extents.x * args.extents.y * args.extents.z + kLinearTileRows - 1u) / kLinearTileRows;
  uint first_row = group_index() / x_tiles * kLinearTileRows;
  uint first_x = group_index() % x_tiles * kLinearTileRows;
  uint valid = valid_rows(args.extents.x, args.extent) * args.extents.y * args.extents.z;
  bool in_vectors = (byte_offset(1u) & 15u) == 0u;
  // This invocation loads every other unit of one row of the weight and one row of x.
  uint own = lane % kLinearTileRows;
  uint row = byte_offset(2u) + min(first_row + own, args.m - 1u) * args.weight_row_bytes;
  bool has_x = first_x + own < valid;
  uint begin = row_offset(args.extents, args.x_strides, has_x ? first_x + own : 0u);
  uint units = first_x < valid ? args.k / 8u : 0u;

  uint fours = lane % (kLinearTileRows / 4u);
  uint eights = lane / (kLinearTileRows / 4u);
  vec4 sums[8];
  for (uint i = 0u; i < 8u; ++i) sums[i] = vec4(0.0);
  for (uint step = 0u; step < units; step += kUnits) {
    for (uint i = lane / kLinearTileRows; i < kUnits; i += gl_WorkGroupSize.x / kLinearTileRows) {
      uint unit = step + i;
      Eight eight = Eight(vec4(0.0), vec4(0.0));
      vec4 a = vec4(0.0);
      vec4 b = vec4(0.0);
      if (unit < units) {
        uvec2 columns = columns_of(dtype, unit);
        eight = eight_of(dtype, row, unit);
        if (has_x) {
          a = x_of(in_vectors, begin + columns.x);
          b = x_of(in_vectors, begin + columns.y);
        }
      }
      put_weights(i, own, eight);
      put_xs(i, own, a, b);
    }
    barrier();
    for (uint k = 0u; k < kUnits * 8u; ++k) {
      vec4 w = weights[k][fours];
      vec4 low = xs[k][eights * 2u];
      vec4 high = xs[k][eights * 2u + 1u];
      sums[0] += w * low.x;
      sums[1] += w * low.y;
      sums[2] += w * low.z;
      sums[3] += w * low.w;
      sums[4] += w * high.x;
      sums[5] += w * high.y;
      sums[6] += w * high.z;
      sums[7] += w * high.w;
    }
    barrier();
  }

  for (uint i = 0u; i < 8u; ++i) {
    uint t = first_x + eights * 8u + i;
    if (t >= valid) break;
    uint out_begin = row_offset(args.extents, args.out_strides, t);
    uint residual_begin = row_offset(args.extents, args.residual_strides, t);
    for (uint j = 0u; j < 4u; ++j) {
      uint r = first_row + fours * 4u + j;
      if (r >= args.m) break;
      float total = sums[i][j];
      if (args.has_residual != 0u) total += residual_element(F32, byte_offset(3u), residual_begin + r);
      put_word((byte_offset(0u) >> 2u) + out_begin + r, floatBitsToUint(total));
    }
  }
}
