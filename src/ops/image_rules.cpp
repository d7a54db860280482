// The rules of the ops on images (rules.h).
#include <fmt/format.h>

#include <limits>

#include "ops/rules.h"
#include "ops/window.h"

namespace shunt {
namespace {

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, std::move(message)); }

std::string text_of(const Operand& operand) {
  return fmt::format("{}{}", name_of(operand.dtype), to_string(operand.shape));
}

Status need_floating(std::string_view name, const Operand& operand) {
  if (info_of(operand.dtype).kind != DTypeKind::floating)
    return invalid(fmt::format("{} must be of a floating dtype, is {}", name, text_of(operand)));
  return {};
}

Status need_images(const Operand& x) {
  SHUNT_TRY(need_floating("x", x));
  if (x.shape.rank() != 4)
    return invalid(fmt::format("x must be [images, channels, height, width], is {}", text_of(x)));
  return {};
}

// Two numbers from 1 on.
Status need_pair(std::string_view name, const Shape& pair) {
  if (pair.rank() != 2 || pair[0] == 0 || pair[1] == 0)
    return invalid(fmt::format("{} {} must be two numbers above 0", name, to_string(pair)));
  return {};
}

// How many places a kernel has along an axis, or 0.
std::uint64_t places(std::uint32_t extent, const WindowAxis& axis) {
  const std::uint64_t reach = std::uint64_t{axis.kernel - 1} * axis.dilation + 1;
  const std::uint64_t padded = std::uint64_t{extent} + axis.before + axis.after;
  return padded < reach ? 0 : (padded - reach) / axis.stride + 1;
}

// The result of a kernel that moves over the two inner axes of x.
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

ResultShape value(const Operand& x, const Shape& shape) {
  return {.operand = Operand::contiguous(x.dtype, shape, TensorKind::value, x.extent)};
}

double bytes(const Operand& operand) {
  return static_cast<double>(operand.shape.elements()) * info_of(operand.dtype).block_bytes;
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

namespace shape_rule {

Result<ResultShape> conv2d(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  const std::uint32_t groups = attributes.u32(Attr::groups);
  SHUNT_TRY(need_images(x));
  SHUNT_TRY(need_floating("weight", weight));
  if (weight.shape.rank() != 4)
    return invalid(fmt::format("weight must be [filters, channels, height, width], is {}", text_of(weight)));
  const std::uint32_t filters = weight.shape[0];
  if (groups == 0 || filters % groups != 0 || std::uint64_t{weight.shape[1]} * groups != x.shape[1])
    return invalid(
        fmt::format("{} groups do not divide the channels of x {} and weight {}", groups, text_of(x), text_of(weight)));
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    SHUNT_TRY(need_floating("bias", *inputs[2]));
    if (inputs[2]->shape != Shape{filters})
      return invalid(fmt::format("bias {} must have one element for each filter of weight {}", text_of(*inputs[2]),
                                 text_of(weight)));
  }
  SHUNT_TRY_ASSIGN(Shape shape, moved_over(x, Shape{weight.shape[2], weight.shape[3]}, attributes,
                                           attributes.shape(Attr::dilation)));
  shape.set(1, filters);
  return value(x, shape);
}

Result<ResultShape> pool2d(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_images(x));
  const Shape& kernel = attributes.shape(Attr::kernel);
  SHUNT_TRY_ASSIGN(const Shape shape, moved_over(x, kernel, attributes, Shape{1, 1}));
  // Otherwise there would be places of the kernel without an element.
  if (x.shape[2] == 0 || x.shape[3] == 0) return invalid(fmt::format("x {} has no pixels", text_of(x)));
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const WindowAxis window = window_axis(axis, kernel, attributes, Shape{1, 1});
    if (window.before >= window.kernel || window.after >= window.kernel)
      return invalid(fmt::format("padding {} must be less than the kernel {}",
                                 to_string(attributes.shape(Attr::padding)), to_string(kernel)));
  }
  return value(x, shape);
}

Result<ResultShape> resize(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Shape& size = attributes.shape(Attr::size);
  SHUNT_TRY(need_images(x));
  SHUNT_TRY(need_pair("size", size));
  if (x.shape[2] == 0 || x.shape[3] == 0) return invalid(fmt::format("x {} has no pixels", text_of(x)));
  return value(x, Shape{x.shape[0], x.shape[1], size[0], size[1]});
}

}  // namespace shape_rule

namespace cost_rule {

Cost conv2d(const OpCall& call) {
  const Operand& weight = call.input(1);
  const double products = weight.shape[0] == 0 ? 0 : static_cast<double>(weight.shape.elements()) / weight.shape[0];
  return {.flops = 2.0 * static_cast<double>(call.output->shape.elements()) * products,
          .bytes_read = bytes(call.input(0)) + bytes(weight),
          .bytes_written = bytes(*call.output)};
}

Cost pool2d(const OpCall& call) {
  const Shape& kernel = call.attributes->shape(Attr::kernel);
  return {.flops = static_cast<double>(call.output->shape.elements()) * kernel[0] * kernel[1],
          .bytes_read = bytes(call.input(0)),
          .bytes_written = bytes(*call.output)};
}

Cost resize(const OpCall& call) {
  const double written = bytes(*call.output);
  return {.flops = 8.0 * static_cast<double>(call.output->shape.elements()),
          .bytes_read = bytes(call.input(0)),
          .bytes_written = written};
}

}  // namespace cost_rule
}  // namespace shunt
