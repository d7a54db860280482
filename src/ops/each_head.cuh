// The end of a source that is compiled once for each head size (x.heads.cu). It expands SHUNT_FOR_HEAD(size), which
// defines kernels shunt_x_SIZE..., for the size SHUNT_HEAD, or for all sizes if there is none: on the host. The build
// reads the sizes from here.
#define SHUNT_EXPANDED(size) SHUNT_FOR_HEAD(size)
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
