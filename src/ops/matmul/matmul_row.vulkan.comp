// matmul and matmul_add of few rows of x.
#include "ops/matmul/row.glsl"
