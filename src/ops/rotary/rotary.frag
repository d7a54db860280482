// A fragment is an invocation of the compute kernel.
#include "ops/rotary/rotary.comp"
