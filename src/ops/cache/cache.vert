// A point does the work of one invocation of the compute kernel. The page table says which word of the state it writes.
#include "ops/cache/cache.comp"
