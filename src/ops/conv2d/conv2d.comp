// One invocation computes kConvRun consecutive elements of the result.
#include "ops/conv2d/conv2d_args.h"

#define Arguments Conv2dArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)
SHUNT_INPUT(4, weight)
SHUNT_INPUT(5, bias)

float x_at(uint at) { return x_element(args.x.dtype, byte_offset(1u), at); }
float weight_at(uint at) { return weight_element(args.weight_dtype, byte_offset(2u), at); }

// For each element: its filter; where in x the plane of its group's first channel begins; and the row and column of x
// at which the kernel begins. Rows and columns of the padding before x wrap around to beyond the last.
uint filters[kConvRun];
uint planes[kConvRun];
uint rows[kConvRun];
uint columns[kConvRun];
float sums[kConvRun];

void place(uint i, uint index) {
  uint row = index / args.places.y;
  uint filter_number = row / args.places.x % args.filters;
  uint image = row / args.places.x / args.filters;
  filters[i] = filter_number;
  planes[i] =
      image * args.x.strides.x + filter_number / (args.filters / args.groups) * args.channels * args.x.strides.y;
  rows[i] = row % args.places.x * args.stride.x - args.padding.x;
  columns[i] = index % args.places.y * args.stride.y - args.padding.y;
  sums[i] =
      args.has_bias == 0u ? 0.0 : bias_element(args.bias_dtype, byte_offset(3u), filter_number * args.bias_stride);
}

// Adds one element of the kernel times the element of x under it, for each element of the result.
void add(uint channel, uint y, uint x) {
  uint tap = channel * args.weight_strides.y + y * args.weight_strides.z + x * args.weight_strides.w;
  float factor = 0.0;
  for (uint i = 0u; i < kConvRun; ++i) {
    if (i == 0u || filters[i] != filters[i - 1u]) factor = weight_at(filters[i] * args.weight_strides.x + tap);
    uint row = rows[i] + y * args.dilation.x;
    uint column = columns[i] + x * args.dilation.y;
    if (row >= args.x.extents.z || column >= args.x.extents.w) continue;
    sums[i] +=
        factor * x_at(planes[i] + channel * args.x.strides.y + row * args.x.strides.z + column * args.x.strides.w);
  }
}

void main() {
  uint end = valid_rows(args.x.entries, args.x.extent) * args.filters * args.places.x * args.places.y;
  uint first = invocation_index() * kConvRun;
  if (first >= end) return;
  for (uint i = 0u; i < kConvRun; ++i) place(i, min(first + i, end - 1u));
  for (uint channel = 0u; channel < args.channels; ++channel)
    for (uint y = 0u; y < args.kernel.x; ++y)
      for (uint x = 0u; x < args.kernel.y; ++x) add(channel, y, x);
  uint step = per_word(args.x.dtype);
  for (uint i = 0u; i < kConvRun; i += step)
    if (first + i < end) store(args.x.dtype, first + i, end, vec2(sums[i], sums[min(i + 1u, kConvRun - 1u)]));
}
