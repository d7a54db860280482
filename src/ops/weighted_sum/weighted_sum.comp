// One invocation computes one word of the result.
#include "ops/weighted_sum/weighted_sum_args.h"

#define Arguments WeightedSumArgs
#include "ops/kernel.glsl"

#include "ops/words.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, weights)

const uint kStretch = 64u;  // products summed before they are added to the rest, so that long sums stay precise

float element(uint index) {
  uint row = index / args.columns;
  uint weight = row_offset(args.weights.extents, args.weights.strides, row);
  uint at = row_offset(args.weights.extents, args.x_strides, row) + index % args.columns * args.column_stride;
  float sum = 0.0;
  for (uint begin = 0u; begin < args.weights.extents.w; begin += kStretch) {
    float stretch = 0.0;
    for (uint j = begin; j < min(begin + kStretch, args.weights.extents.w); ++j)
      stretch += weights_element(args.weights.dtype, byte_offset(2u), weight + j * args.weights.strides.w) *
                 x_element(args.x_dtype, byte_offset(1u), at + j * args.x_strides.w);
    sum += stretch;
  }
  return sum;
}

void main() { store_word(args.x_dtype, valid_row_count(args.weights) * args.columns); }
