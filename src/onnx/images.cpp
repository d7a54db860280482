// Convolutions, pooling and resizing of images [images, channels, height, width].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/checked.h"
#include "onnx/translators.h"

namespace shunt::onnx {
namespace {

using Pair = std::array<std::uint32_t, 2>;

struct Window {
  Pair kernel{1, 1};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  std::array<std::uint32_t, 4> padding{};  // above, left, below, right

  // The result's extent on `axis` (0: height).
  [[nodiscard]] std::int64_t result_of(std::uint32_t extent, std::size_t axis) const {
    const std::int64_t padded = std::int64_t{extent} + padding[axis] + padding[axis + 2];
    return padded < covered(axis) ? 0 : (padded - covered(axis)) / stride[axis] + 1;
  }
  // The extent of x that the kernel covers at one position. REQUIRES: the kernel has no extent of 0.
  [[nodiscard]] std::int64_t covered(std::size_t axis) const {
    return std::int64_t{dilation[axis]} * (kernel[axis] - 1) + 1;
  }
  [[nodiscard]] Shape padding_shape() const { return {padding[0], padding[1], padding[2], padding[3]}; }
};

Result<const Value*> image_of(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  if (x->shape.rank() != 4) return call.unsupported(fmt::format("x is {}; images have four axes", to_string(x->shape)));
  return x;
}

Result<Pair> pair_of(const Call& call, std::string_view name, const Pair& fallback) {
  const std::span<const std::int64_t> numbers = call.integers(name);
  if (numbers.empty() && fallback[0] != 0 && fallback[1] != 0) return fallback;
  if (numbers.size() != 2 || std::ranges::any_of(numbers, [](std::int64_t n) { return n < 1 || n > 65536; }))
    return call.invalid(fmt::format("{} must be two numbers from 1 to 65536", name));
  return Pair{static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1])};
}

// For SAME_UPPER and SAME_LOWER: pads so that the result is as large as x divided by the stride.
Status pad_to_same(const Call& call, const Shape& x, bool more_below, Window& window) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t extent = x[axis + 2];
    const std::int64_t wanted = (extent + window.stride[axis] - 1) / window.stride[axis];
    const std::int64_t rows =
        std::max<std::int64_t>(0, (wanted - 1) * window.stride[axis] + window.covered(axis) - extent);
    const auto all = checked_product<std::uint32_t>(rows);
    if (!all) return call.unsupported(fmt::format("a padding of {}", rows));
    window.padding[axis] = more_below ? *all / 2 : *all - *all / 2;
    window.padding[axis + 2] = *all - window.padding[axis];
  }
  return {};
}

Result<Window> window_of(const Call& call, const Shape& x, const Pair& kernel) {
  Window window;
  SHUNT_TRY_ASSIGN(window.kernel, pair_of(call, "kernel_shape", kernel));
  SHUNT_TRY_ASSIGN(window.stride, pair_of(call, "strides", window.stride));
  SHUNT_TRY_ASSIGN(window.dilation, pair_of(call, "dilations", window.dilation));
  if (call.integer("ceil_mode", 0) != 0) return call.unsupported("ceil_mode");
  const std::span<const std::int64_t> pads = call.integers("pads");
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (pads.size() != 4 || pads[i] < 0 || pads[i] > 65536)
      return call.unsupported("pads other than four numbers from 0 on");
    window.padding[i] = static_cast<std::uint32_t>(pads[i]);
  }
  const std::string_view automatic = call.text("auto_pad", "NOTSET");
  if (automatic.starts_with("SAME_")) SHUNT_TRY(pad_to_same(call, x, automatic == "SAME_UPPER", window));
  return window;
}

// Returns the shape of the result. Errors: invalid if the kernel does not fit.
Result<Shape> result_shape(const Call& call, const Window& window, const Shape& x, std::uint32_t channels) {
  const auto height = checked_product<std::uint32_t>(window.result_of(x[2], 0));
  const auto width = checked_product<std::uint32_t>(window.result_of(x[3], 1));
  if (height == 0U || width == 0U) return call.invalid(fmt::format("the kernel is larger than {}", to_string(x)));
  if (!height || !width) return call.unsupported(fmt::format("the result of {} is too large", to_string(x)));
  return Shape{x[0], channels, *height, *width};
}

Outputs pool(const Call& call, Op op) {
  SHUNT_TRY_ASSIGN(const Value* x, image_of(call));
  SHUNT_TRY_ASSIGN(const Window window, window_of(call, x->shape, {1, 1}));
  const bool is_padded = std::ranges::any_of(window.padding, [](std::uint32_t rows) { return rows != 0; });
  if (window.dilation != Pair{1, 1}) return call.unsupported("dilations");
  if (is_padded && call.integer("count_include_pad", 0) != 0) return call.unsupported("count_include_pad");
  SHUNT_TRY_ASSIGN(const Shape shape, result_shape(call, window, x->shape, x->shape[1]));
  SHUNT_TRY_ASSIGN(const Tensor operand, call.builder().tensor(*x));
  return one(
      Builder::computed(call.builder().graph().add_node(op, std::span(&operand, 1),
                                                        {{Attr::kernel, Shape{window.kernel[0], window.kernel[1]}},
                                                         {Attr::stride, Shape{window.stride[0], window.stride[1]}},
                                                         {Attr::padding, window.padding_shape()}}),
                        x->type, shape));
}

// Returns the height and width of the result, from sizes or scales.
Result<Pair> resized(const Call& call, const Shape& x) {
  std::vector<std::int64_t> scaled;
  std::span<const std::int64_t> sizes;
  if (call.has(3)) {
    SHUNT_TRY_ASSIGN(sizes, call.known_integers(3));
  } else {
    SHUNT_TRY_ASSIGN(const std::span<const float> scales, call.known_floats(2));
    for (std::size_t axis = 0; axis < scales.size() && axis < 4; ++axis) {
      if (!(scales[axis] > 0.0F && scales[axis] <= 65536.0F))
        return call.invalid(fmt::format("a scale of {}", scales[axis]));
      scaled.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(scales[axis]) * x[axis])));
    }
    sizes = scaled;
  }
  if (sizes.size() != 4 || sizes[0] != x[0] || sizes[1] != x[1])
    return call.unsupported("other axes than height and width are resized");
  for (const std::int64_t size : {sizes[2], sizes[3]})
    if (size < 1 || size > 65536) return call.invalid(fmt::format("a size of {}", size));
  return Pair{static_cast<std::uint32_t>(sizes[2]), static_cast<std::uint32_t>(sizes[3])};
}

}  // namespace

Outputs conv(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, image_of(call));
  SHUNT_TRY_ASSIGN(const Value* filters, call.input(1));
  const std::int64_t groups = call.integer("group", 1);
  if (filters->shape.rank() != 4 || groups < 1 || checked_product<std::uint32_t>(groups) == std::nullopt ||
      checked_product(filters->shape[1], groups) != x->shape[1])
    return call.invalid(
        fmt::format("{} by filters {} in {} groups", to_string(x->shape), to_string(filters->shape), groups));
  SHUNT_TRY_ASSIGN(const Window window, window_of(call, x->shape, {filters->shape[2], filters->shape[3]}));
  if (window.kernel != Pair{filters->shape[2], filters->shape[3]})
    return call.invalid("kernel_shape is not the filters'");
  SHUNT_TRY_ASSIGN(const Shape shape, result_shape(call, window, x->shape, filters->shape[0]));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor image, builder.tensor(*x));
  SHUNT_TRY_ASSIGN(const Tensor weight, builder.tensor(*filters));
  Tensor bias;
  if (call.has(2)) {
    SHUNT_TRY_ASSIGN(const Value* given, call.input(2));
    SHUNT_TRY_ASSIGN(bias, builder.tensor(*given));
  }
  return one(Builder::computed(builder.graph().conv2d(image, weight, bias,
                                                      {{Attr::stride, Shape{window.stride[0], window.stride[1]}},
                                                       {Attr::padding, window.padding_shape()},
                                                       {Attr::dilation, Shape{window.dilation[0], window.dilation[1]}},
                                                       {Attr::groups, static_cast<std::uint32_t>(groups)}}),
                               x->type, shape));
}

Outputs max_pool(const Call& call) { return pool(call, Op::max_pool2d); }
Outputs average_pool(const Call& call) { return pool(call, Op::avg_pool2d); }

Outputs global_average_pool(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, image_of(call));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor image, builder.tensor(*x));
  SHUNT_TRY_ASSIGN(const std::uint32_t pixels, call.extents(x->shape, 2, 4));
  const Tensor flat = builder.reshaped(image, {x->shape[0], x->shape[1], pixels});
  const Shape shape{x->shape[0], x->shape[1], 1, 1};
  return one(Builder::computed(builder.reshaped(builder.graph().reduce_mean(flat), shape), x->type, shape));
}

Outputs resize(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, image_of(call));
  SHUNT_TRY_ASSIGN(const Pair size, resized(call, x->shape));
  const std::string_view mode = call.text("mode", "nearest");
  const std::string_view places = call.text("coordinate_transformation_mode", "half_pixel");
  if (places != "half_pixel") return call.unsupported(fmt::format("coordinates by {}; supported: half_pixel", places));
  if (mode != "nearest" && mode != "linear")
    return call.unsupported(fmt::format("mode {}; supported: nearest, linear", mode));
  if (mode == "nearest" && call.text("nearest_mode", "round_prefer_floor") != "round_prefer_floor")
    return call.unsupported("nearest_mode other than round_prefer_floor");
  if (call.integer("antialias", 0) != 0) return call.unsupported("antialias");
  SHUNT_TRY_ASSIGN(const Tensor image, call.builder().tensor(*x));
  const Shape shape{x->shape[0], x->shape[1], size[0], size[1]};
  const Op op = mode == "nearest" ? Op::resize_nearest : Op::resize_bilinear;
  return one(Builder::computed(
      call.builder().graph().add_node(op, std::span(&image, 1), {{Attr::size, Shape{size[0], size[1]}}}), x->type,
      shape));
}

}  // namespace shunt::onnx
