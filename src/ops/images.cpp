#include "ops/images.h"

#include <fmt/format.h>

#include <limits>

namespace shunt {
namespace {

// Returns how many places a kernel has along an axis; 0 if it does not fit.
std::uint64_t places(std::uint32_t extent, const WindowAxis& axis) {
  const std::uint64_t reach = std::uint64_t{axis.kernel - 1} * axis.dilation + 1;
  const std::uint64_t padded = std::uint64_t{extent} + axis.before + axis.after;
  return padded < reach ? 0 : (padded - reach) / axis.stride + 1;
}

}  // namespace

WindowAxis window_axis(std::size_t axis, const Shape& kernel, const Attributes& attributes, const Shape& dilation) {
  const Shape& padding = attributes.shape(Attr::padding);
  return {.kernel = kernel[axis],
          .stride = attributes.shape(Attr::stride)[axis],
          .dilation = dilation[axis],
          .before = padding[axis],
          .after = padding[padding.rank() == 4 ? axis + 2 : axis]};
}

Status need_images(const Operand& x) {
  SHUNT_TRY(need_floating("x", x));
  if (x.shape.rank() != 4)
    return invalid(fmt::format("x must be [images, channels, height, width], is {}", text_of(x)));
  return {};
}

Status need_pair(std::string_view name, const Shape& pair) {
  if (pair.rank() != 2 || pair[0] == 0 || pair[1] == 0)
    return invalid(fmt::format("{} {} must be two numbers above 0", name, to_string(pair)));
  return {};
}

Result<Shape> moved_over(const Operand& x, const Shape& kernel, const Attributes& attributes, const Shape& dilation) {
  const Shape& padding = attributes.shape(Attr::padding);
  SHUNT_TRY(need_pair("kernel", kernel));
  SHUNT_TRY(need_pair("stride", attributes.shape(Attr::stride)));
  SHUNT_TRY(need_pair("dilation", dilation));
  if (padding.rank() != 2 && padding.rank() != 4)
    return invalid(fmt::format("padding {} must be two or four numbers", to_string(padding)));
  Shape shape = x.shape;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const WindowAxis window = window_axis(axis, kernel, attributes, dilation);
    const std::uint64_t count = places(x.shape[2 + axis], window);
    if (count == 0 || count > std::numeric_limits<std::uint32_t>::max())
      return invalid(fmt::format("a kernel {} has {} places on x {} with padding {}", to_string(kernel), count,
                                 text_of(x), to_string(padding)));
    shape.set(2 + axis, static_cast<std::uint32_t>(count));
  }
  return shape;
}

SampleBuilder::Request pick_images(SampleBuilder& sample, std::uint32_t channels) {
  const DType dtype = sample.pick_floating();
  const Entries entries =
      sample.pick({Entries{.count = 2, .valid = 2}, Entries{.count = 1, .valid = 1}, Entries{.count = 0, .valid = 0},
                   Entries{.count = 4, .extent = Extent::tokens, .valid = 3}});
  const Shape pixels = sample.pick_pixels({Shape{9, 12}, Shape{5, 5}, Shape{7, 37}});
  return {.dtype = dtype,
          .shape = {entries.count, channels, pixels[0], pixels[1]},
          .extent = entries.extent,
          .view = sample.pick_view()};
}

void set_window(SampleBuilder& sample) {
  sample.set(Attr::stride, sample.pick({Shape{1, 1}, Shape{2, 3}}));
  sample.set(Attr::padding, sample.pick({Shape{0, 0}, Shape{1, 1}, Shape{0, 1, 1, 0}}));
}

void add_bench_image(BenchBuilder& bench) {
  bench.add_values({bench.rows(), kBenchChannels, kBenchPixels, kBenchPixels});
}

}  // namespace shunt
