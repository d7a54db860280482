// Shared by the rules of image ops: a kernel that moves over the two inner axes, and operands to test it on.
#pragma once

#include "ops/rules.h"

namespace shunt {

// How a kernel moves over one axis of an image. A plain value.
struct WindowAxis {
  std::uint32_t kernel = 1;
  std::uint32_t stride = 1;
  std::uint32_t dilation = 1;
  std::uint32_t before = 0;  // padding
  std::uint32_t after = 0;
};
// Axis 0 is the height, 1 the width. REQUIRES: the shape rule accepted the attributes.
[[nodiscard]] WindowAxis window_axis(std::size_t axis, const Shape& kernel, const Attributes& attributes,
                                     const Shape& dilation);

// Checks that x is [images, channels, height, width] of a floating dtype.
[[nodiscard]] Status need_images(const Operand& x);
// Checks that `pair` holds two numbers above 0.
[[nodiscard]] Status need_pair(std::string_view name, const Shape& pair);
// Returns the shape of x after a kernel has moved over its two inner axes.
[[nodiscard]] Result<Shape> moved_over(const Operand& x, const Shape& kernel, const Attributes& attributes,
                                       const Shape& dilation);

[[nodiscard]] SampleBuilder::Request pick_images(SampleBuilder& sample, std::uint32_t channels);
// Sets stride and padding.
void set_window(SampleBuilder& sample);

// Adds an F32 input [rows, kBenchChannels, kBenchPixels, kBenchPixels].
void add_bench_image(BenchBuilder& bench);
inline constexpr std::uint32_t kBenchPixels = 14;
inline constexpr std::uint32_t kBenchChannels = 32;

}  // namespace shunt
