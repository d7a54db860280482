// Arguments of conv2d: out[n, f, y, x] = bias[f] + the sum of weight times the element of x under it, over the channels
// of f's group and the elements of the kernel. x is padded with zeros.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(Conv2dArgs) {
  StridedTensor x;  // [images, channels, height, width]; the contiguous result has its dtype
  SHUNT_U32S(4, weight_strides);
  SHUNT_U32(filters);
  SHUNT_U32(channels);  // of each group
  SHUNT_U32(groups);
  SHUNT_U32(has_bias);
  SHUNT_U32S(2, places);  // positions of the kernel: height and width of the result; all pairs are in this order
  SHUNT_U32S(2, kernel);
  SHUNT_U32S(2, stride);
  SHUNT_U32S(2, dilation);
  SHUNT_U32S(2, padding);  // above and left
  SHUNT_U32(weight_dtype);
  SHUNT_U32(bias_dtype);
  SHUNT_U32(bias_stride);
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(Conv2dArgs, 144)

// Elements of the result per invocation of the GLSL kernel: whole words of any dtype.
SHUNT_ARGS_CONSTANT(kConvRun, 4)
// Filters of a group per thread of the CUDA kernel.
SHUNT_ARGS_CONSTANT(kConvFilters, 4)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns how many threads share the filters of a group.
constexpr std::uint32_t conv_shares(const Conv2dArgs& args) {
  return (args.filters / args.groups + kConvFilters - 1) / kConvFilters;
}

}  // namespace shunt
#endif
