// rms_norm_matmul and rms_norm_swiglu of few rows of x.
#define SHUNT_NORMALIZED
#include "ops/matmul/row.glsl"
