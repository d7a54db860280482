// The same for floats and Q8_0 alone: drivers that compute on the CPU are slow with all that a kernel has, used or not.
#define SHUNT_FEW_WEIGHTS
#include "ops/matmul/matmul.comp"
