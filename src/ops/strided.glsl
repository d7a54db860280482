// StridedTensor of strided_args.h.
struct StridedTensor {
  uvec4 extents;
  uvec4 strides;
  uint dtype;
  uint extent;
  uint entries;
  uint first_axis;
};
