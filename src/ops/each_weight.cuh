// The end of a source that is compiled once for each weight dtype (x.weights.cu). It expands SHUNT_FOR_WEIGHT(dtype),
// which defines kernels shunt_x_DTYPE..., for the dtype SHUNT_WEIGHT, or for all dtypes if there is none: on the host,
// and for AMD GPUs, whose code is not compiled at run time.
#define SHUNT_EXPANDED(weight) SHUNT_FOR_WEIGHT(weight)
#ifdef SHUNT_WEIGHT
SHUNT_EXPANDED(SHUNT_WEIGHT)
#else
#define SHUNT_EACH_floating(name) SHUNT_EXPANDED(name)
#define SHUNT_EACH_quantized(name) SHUNT_EXPANDED(name)
#define SHUNT_EACH_integer(name)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_EACH_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_EACH_floating
#undef SHUNT_EACH_quantized
#undef SHUNT_EACH_integer
#endif
#undef SHUNT_EXPANDED
#undef SHUNT_FOR_WEIGHT
