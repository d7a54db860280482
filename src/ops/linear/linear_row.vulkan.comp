// linear and linear_add of few rows of x.
#include "ops/linear/row.glsl"
