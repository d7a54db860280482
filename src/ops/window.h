// How a kernel moves over one axis of an image: what convolution and pooling have in common. Plain values.
#pragma once

#include "ops/op.h"

namespace shunt {

struct WindowAxis {
  std::uint32_t kernel = 1;
  std::uint32_t stride = 1;
  std::uint32_t dilation = 1;
  std::uint32_t before = 0;  // padding
  std::uint32_t after = 0;
};
// Axis 0 is the height, 1 the width. REQUIRES: the shape rule took the attributes.
[[nodiscard]] WindowAxis window_axis(std::size_t axis, const Shape& kernel, const Attributes& attributes,
                                     const Shape& dilation);

}  // namespace shunt
