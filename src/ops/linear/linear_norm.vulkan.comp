// rms_norm_linear and rms_norm_swiglu for few rows of x.
#define SHUNT_NORMALIZED
#include "ops/linear/row.glsl"
