// linear and linear_add for few rows of x.
#include "ops/linear/row.glsl"
