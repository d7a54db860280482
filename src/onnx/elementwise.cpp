// Elementwise operators.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onnx/translators.h"

namespace shunt::onnx {
namespace {

// Drops leading axes of one, which broadcasting ignores.
Shape trimmed(const Shape& shape) {
  Shape result;
  for (std::uint32_t axis = 0; axis < shape.rank(); ++axis)
    if (result.rank() != 0 || shape[axis] != 1) result.append(shape[axis]);
  return result;
}

bool is_suffix(const Shape& small, const Shape& large) {
  if (small.rank() > large.rank()) return false;
  for (std::uint32_t axis = 0; axis < small.rank(); ++axis)
    if (small[axis] != large[large.rank() - small.rank() + axis]) return false;
  return true;
}

double apply(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::maximum:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

Result<std::int64_t> apply(const Call& call, Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Op::add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Op::sub:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::mul:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::div:
      if (b == 0 || b == -1) return b == 0 ? call.invalid("division of integers by 0") : apply(call, Op::sub, 0, a);
      result = a / b;
      break;
    case Op::maximum:
      result = std::max(a, b);
      break;
    default:
      result = std::min(a, b);
      break;
  }
  if (overflows) return call.invalid(fmt::format("{} and {} give more than 64 bits", a, b));
  return result;
}

// Computes the result now, as both operands are known.
Result<Value> folded(const Call& call, Op op, const Value& a, const Value& b, const Shape& shape) {
  if (a.constant->is_integer != b.constant->is_integer) return call.invalid("integers and floats together");
  SHUNT_TRY_ASSIGN(Constant result, call.repeated(*a.constant, a.shape, shape));
  SHUNT_TRY_ASSIGN(const Constant right, call.repeated(*b.constant, b.shape, shape));
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!result.is_integer) {
      result.floats[i] =
          static_cast<float>(apply(op, static_cast<double>(result.floats[i]), static_cast<double>(right.floats[i])));
      continue;
    }
    SHUNT_TRY_ASSIGN(result.integers[i], apply(call, op, result.integers[i], right.integers[i]));
  }
  return Builder::known(std::move(result), a.type, shape);
}

// Returns a tensor whose shape is a suffix of `shape`. Constants are repeated as needed.
Result<Tensor> fitted(const Call& call, const Value& value, const Shape& shape) {
  const Shape small = trimmed(value.shape);
  Builder& builder = call.builder();
  if (is_suffix(small, shape)) {
    SHUNT_TRY_ASSIGN(const Tensor x, builder.tensor(value));
    return small == value.shape ? x : builder.reshaped(x, small);
  }
  if (!value.is_known())
    return call.unsupported(fmt::format("\"{}\" {} is to be repeated within {}; only constants are", value.name,
                                        to_string(value.shape), to_string(shape)));
  Shape to;
  for (std::uint32_t axis = shape.rank() - small.rank(); axis < shape.rank(); ++axis) to.append(shape[axis]);
  SHUNT_TRY_ASSIGN(const Constant elements, call.repeated(*value.constant, small, to));
  return builder.weight(value.name, elements, to);
}

// For an `a` that is broadcast over b: turns a - b into -b + a, and a / b into (1 / b) * a.
struct Exchanged {
  Op first;
  Op then;
};
std::optional<Exchanged> exchanged(Op op) {
  if (op == Op::sub) return Exchanged{Op::neg, Op::add};
  if (op == Op::div) return Exchanged{Op::reciprocal, Op::mul};
  return std::nullopt;
}

Outputs unary(const Call& call, Op op, const Attributes& attributes = {}) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  if (x->is_integer()) return call.unsupported(fmt::format("{} of integers", name_of(x->type)));
  SHUNT_TRY_ASSIGN(const Tensor operand, call.builder().tensor(*x));
  return one(
      Builder::computed(call.builder().graph().add_node(op, std::span(&operand, 1), attributes), x->type, x->shape));
}

Outputs binary_of(const Call& call, Op op) {
  SHUNT_TRY_ASSIGN(const Value* first, call.input(0));
  Value result = *first;
  for (std::size_t i = 1; i < call.input_count(); ++i) {
    SHUNT_TRY_ASSIGN(const Value* next, call.input(i));
    SHUNT_TRY_ASSIGN(result, binary(call, op, result, *next));
  }
  return one(std::move(result));
}

}  // namespace

Result<Value> binary(const Call& call, Op op, const Value& a, const Value& b) {
  const auto shape = broadcast(a.shape, b.shape);
  if (!shape) return call.invalid(shape.error().message);
  if (a.is_known() && b.is_known()) return folded(call, op, a, b, *shape);
  if (a.is_integer() || b.is_integer()) return call.unsupported("integers that are not known before the graph runs");
  GraphBuilder& graph = call.builder().graph();
  const auto apply_op = [&](Op which, Tensor x, Tensor y) {
    const Tensor operands[] = {x, y};
    return Builder::computed(graph.add_node(which, operands), a.type, *shape);
  };
  if (a.shape == *shape) {
    SHUNT_TRY_ASSIGN(const Tensor x, call.builder().tensor(a));
    SHUNT_TRY_ASSIGN(const Tensor y, fitted(call, b, *shape));
    return apply_op(op, x, y);
  }
  if (b.shape != *shape)
    return call.unsupported(
        fmt::format("both operands, {} and {}, are to be repeated", to_string(a.shape), to_string(b.shape)));
  SHUNT_TRY_ASSIGN(Tensor x, call.builder().tensor(b));
  SHUNT_TRY_ASSIGN(const Tensor y, fitted(call, a, *shape));
  if (const auto change = exchanged(op)) {
    x = graph.add_node(change->first, std::span(&x, 1));
    op = change->then;
  }
  return apply_op(op, x, y);
}

Outputs add(const Call& call) { return binary_of(call, Op::add); }
Outputs subtract(const Call& call) { return binary_of(call, Op::sub); }
Outputs multiply(const Call& call) { return binary_of(call, Op::mul); }
Outputs divide(const Call& call) { return binary_of(call, Op::div); }
Outputs maximum(const Call& call) { return binary_of(call, Op::maximum); }
Outputs minimum(const Call& call) { return binary_of(call, Op::minimum); }

Outputs negate(const Call& call) { return unary(call, Op::neg); }
Outputs absolute(const Call& call) { return unary(call, Op::abs); }
Outputs exponential(const Call& call) { return unary(call, Op::exp); }
Outputs logarithm(const Call& call) { return unary(call, Op::log); }
Outputs square_root(const Call& call) { return unary(call, Op::sqrt); }
Outputs reciprocal(const Call& call) { return unary(call, Op::reciprocal); }
Outputs sine(const Call& call) { return unary(call, Op::sin); }
Outputs cosine(const Call& call) { return unary(call, Op::cos); }
Outputs error_function(const Call& call) { return unary(call, Op::erf); }
Outputs hyperbolic_tangent(const Call& call) { return unary(call, Op::tanh); }
Outputs sigmoid(const Call& call) { return unary(call, Op::sigmoid); }
Outputs softplus(const Call& call) { return unary(call, Op::softplus); }
Outputs relu(const Call& call) { return unary(call, Op::relu); }
Outputs gelu(const Call& call) {
  return unary(call, call.text("approximate", "none") == "tanh" ? Op::gelu : Op::gelu_erf);
}

Outputs power(const Call& call) {
  SHUNT_TRY_ASSIGN(const std::span<const float> exponent, call.known_floats(1));
  if (exponent.size() == 1 && exponent[0] == 2) return unary(call, Op::square);
  if (exponent.size() == 1 && exponent[0] == 0.5F) return unary(call, Op::sqrt);
  if (exponent.size() == 1 && exponent[0] == -1) return unary(call, Op::reciprocal);
  return call.unsupported("exponents other than 2, 0.5 and -1");
}

Outputs clip(const Call& call) {
  Attributes attributes;
  constexpr Attr kLimits[] = {Attr::low, Attr::high};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!call.has(i + 1)) continue;
    SHUNT_TRY_ASSIGN(const std::span<const float> limit, call.known_floats(i + 1));
    if (limit.size() != 1) return call.invalid("a limit that is no single number");
    attributes.set(kLimits[i], limit[0]);
  }
  return unary(call, Op::clamp, attributes);
}

// In inference this is a scale and a shift per channel.
Outputs batch_normalization(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::span<const float> scale, call.known_floats(1));
  SHUNT_TRY_ASSIGN(const std::span<const float> shift, call.known_floats(2));
  SHUNT_TRY_ASSIGN(const std::span<const float> mean, call.known_floats(3));
  SHUNT_TRY_ASSIGN(const std::span<const float> variance, call.known_floats(4));
  const std::size_t channels = x->shape.rank() < 2 ? 0 : x->shape[1];
  if (channels == 0 || scale.size() != channels || shift.size() != channels || mean.size() != channels ||
      variance.size() != channels)
    return call.invalid(fmt::format("x is {}, and its parameters are not one per channel", to_string(x->shape)));
  if (call.integer("training_mode", 0) != 0) return call.unsupported("training_mode");
  SHUNT_TRY_ASSIGN(Constant factor, call.zeros(false, channels));
  SHUNT_TRY_ASSIGN(Constant offset, call.zeros(false, channels));
  const auto epsilon = static_cast<double>(call.real("epsilon", 1e-5F));
  for (std::size_t i = 0; i < channels; ++i) {
    const double by = static_cast<double>(scale[i]) / std::sqrt(static_cast<double>(variance[i]) + epsilon);
    factor.floats[i] = static_cast<float>(by);
    offset.floats[i] = static_cast<float>(static_cast<double>(shift[i]) - static_cast<double>(mean[i]) * by);
  }
  Shape each{static_cast<std::uint32_t>(channels)};
  while (each.rank() + 1 < x->shape.rank()) each.append(1);
  SHUNT_TRY_ASSIGN(const Value scaled, binary(call, Op::mul, *x, Builder::known(std::move(factor), Type::f32, each)));
  SHUNT_TRY_ASSIGN(Value result, binary(call, Op::add, scaled, Builder::known(std::move(offset), Type::f32, each)));
  return one(std::move(result));
}

}  // namespace shunt::onnx
