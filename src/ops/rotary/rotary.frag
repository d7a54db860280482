// A fragment does the work of one invocation of the compute kernel.
#include "ops/rotary/rotary.comp"
