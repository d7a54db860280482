// Each fragment is one invocation of the compute kernel.
#include "ops/elementwise/elementwise.comp"
