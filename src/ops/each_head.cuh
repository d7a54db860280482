// The end of a source that is compiled once for each head size (x.heads.cu). It expands SHUNT_FOR_HEAD(size), which
// defines kernels shunt_x_SIZE..., for the size SHUNT_HEAD, or for all sizes if there is none: on the host. The build
// reads the sizes from here.
#define SHUNT_EXPANDED(size) SHUNT_FOR_HEAD(size)
// Expands what is for heads of whole blocks of 32 elements.
#define SHUNT_IN_BLOCKS(size, ...) SHUNT_IN_BLOCKS_##size(__VA_ARGS__)
#define SHUNT_IN_BLOCKS_64(...) __VA_ARGS__
#define SHUNT_IN_BLOCKS_80(...)
#define SHUNT_IN_BLOCKS_96(...) __VA_ARGS__
#define SHUNT_IN_BLOCKS_112(...)
#define SHUNT_IN_BLOCKS_128(...) __VA_ARGS__
#define SHUNT_IN_BLOCKS_192(...) __VA_ARGS__
#define SHUNT_IN_BLOCKS_256(...) __VA_ARGS__
#ifdef SHUNT_HEAD
SHUNT_EXPANDED(SHUNT_HEAD)
#else
SHUNT_EXPANDED(64)
SHUNT_EXPANDED(80)
SHUNT_EXPANDED(96)
SHUNT_EXPANDED(112)
SHUNT_EXPANDED(128)
SHUNT_EXPANDED(192)
SHUNT_EXPANDED(256)
#endif
#undef SHUNT_EXPANDED
#undef SHUNT_FOR_HEAD
