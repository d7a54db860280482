// Shared by the norm fragment shaders: the elements of a row, and the factor that scales all of them.
#include "ops/norm/norm_args.h"

#define Arguments NormArgs
#include "ops/kernel.glsl"

SHUNT_INPUT(3, x)

float x_at(uint row, uint column) {
  return x_element(args.x.dtype, byte_offset(1u),
                   row_offset(args.x.extents, args.x.strides, row) + column * args.x.strides.w);
}

float factor_of(uint row) {
  float sum = 0.0;
  for (uint column = 0u; column < args.x.extents.w; ++column) {
    float value = x_at(row, column);
    sum += value * value;
  }
  return 1.0 / sqrt(sum / float(args.x.extents.w) + args.epsilon);
}
