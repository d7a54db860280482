// A point is an invocation of the compute kernel: which word of the state it writes comes from the page table.
#include "ops/cache/cache.comp"
