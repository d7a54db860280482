// A fragment is an invocation of the compute kernel.
#include "ops/gather/gather.comp"
