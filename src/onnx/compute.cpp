// Matrix products, norms and reductions.
#include <fmt/format.h>

#include <algorithm>

#include "onnx/translators.h"

namespace shunt::onnx {
namespace {

// Matrices that may be multiplied one by one; each becomes its own nodes, which cost that many bytes and the time.
constexpr std::uint32_t kMostMatrices = 256;
constexpr std::uint64_t kBytesPerMatrix = 16384;

std::uint32_t extent_from_end(const Shape& shape, std::uint32_t place) { return shape[shape.rank() - 1 - place]; }

// Transposes b [k, n] to [n, k], as the op expects it.
Result<Tensor> exchanged(const Call& call, const Value& b) {
  constexpr std::uint32_t kAxes[] = {1, 0};
  if (b.is_known()) {
    SHUNT_TRY_ASSIGN(const Constant elements, call.transposed(*b.constant, b.shape, kAxes));
    return call.builder().weight(b.name, elements, {b.shape[1], b.shape[0]});
  }
  return call.builder().permuted(b.tensor, kAxes);
}

// Multiplies x [.., k] by b [k, n].
Result<Value> by_matrix(const Call& call, const Value& x, const Value& b) {
  SHUNT_TRY_ASSIGN(const Tensor weight, exchanged(call, b));
  SHUNT_TRY_ASSIGN(const Tensor operand, call.builder().tensor(x));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const std::uint32_t rows, call.extents(x.shape, 0, x.shape.rank() - 1));
  const Tensor y = builder.graph().linear(builder.reshaped(operand, {rows, x.shape.columns()}), weight);
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, b.shape[1]);
  return Builder::computed(builder.reshaped(y, shape), x.type, shape);
}

// Returns matrix `index` of x [matrices, rows, columns].
Value matrix_of(const Call& call, Tensor x, const Shape& shape, std::uint32_t index) {
  Builder& builder = call.builder();
  const Tensor one = shape[0] == 1 ? x : builder.sliced(x, 0, index, 1);
  const Shape matrix{shape[1], shape[2]};
  return Builder::computed(builder.reshaped(one, matrix), Type::f32, matrix);
}

// Multiplies a [.., m, k] by b [.., k, n], both with the same leading axes.
Result<Value> by_matrices(const Call& call, const Value& a, const Value& b) {
  Builder& builder = call.builder();
  const std::uint32_t k = a.shape.columns();
  const std::uint32_t m = extent_from_end(a.shape, 1);
  const std::uint32_t n = b.shape.columns();
  SHUNT_TRY_ASSIGN(const std::uint32_t matrices, call.extents(a.shape, 0, a.shape.rank() - 2));
  for (std::uint32_t axis = 0; axis + 2 < a.shape.rank(); ++axis) {
    if (b.shape.rank() != a.shape.rank() || b.shape[axis] != a.shape[axis])
      return call.unsupported(
          fmt::format("{} by {}: leading axes must be alike", to_string(a.shape), to_string(b.shape)));
  }
  if (matrices == 0 || matrices > kMostMatrices)
    return call.unsupported(fmt::format("{} matrices; 1 to {}", matrices, kMostMatrices));
  if (Status room = builder.budget().take(matrices, kBytesPerMatrix); !room) return call.here(std::move(room).error());
  SHUNT_TRY_ASSIGN(const Tensor left, builder.tensor(a));
  SHUNT_TRY_ASSIGN(const Tensor right, builder.tensor(b));
  const Shape left_shape{matrices, m, k};
  const Shape right_shape{matrices, k, n};
  const Tensor lefts = builder.reshaped(left, left_shape);
  const Tensor rights = builder.reshaped(right, right_shape);
  std::vector<Tensor> results;
  for (std::uint32_t i = 0; i < matrices; ++i) {
    const Value x = matrix_of(call, lefts, left_shape, i);
    const Value y = matrix_of(call, rights, right_shape, i);
    SHUNT_TRY_ASSIGN(const Value product, by_matrix(call, x, y));
    results.push_back(builder.reshaped(product.tensor, {1, m, n}));
  }
  Shape shape = a.shape;
  shape.set(shape.rank() - 1, n);
  return Builder::computed(builder.reshaped(builder.joined(std::move(results), 0), shape), a.type, shape);
}

// Returns the axes to reduce, counted from the front, in order; all axes if none is named.
Result<std::vector<std::uint32_t>> reduced_axes(const Call& call, std::uint32_t rank) {
  std::span<const std::int64_t> named = call.integers("axes");
  if (call.has(1)) {
    SHUNT_TRY_ASSIGN(named, call.known_integers(1));
  }
  if (named.size() > rank) return call.invalid(fmt::format("{} axes of a tensor that has {}", named.size(), rank));
  std::vector<std::uint32_t> axes;
  for (const std::int64_t each : named) {
    SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(each, rank));
    axes.push_back(axis);
  }
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) == 0)
    for (std::uint32_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) return call.invalid("an axis is named twice");
  return axes;
}

Outputs reduced(const Call& call, Op op) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const auto axes, reduced_axes(call, x->shape.rank()));
  if (axes.empty()) return one(*x);
  if (x->is_integer()) return call.unsupported("integers");
  Builder& builder = call.builder();
  std::vector<std::uint32_t> order;
  Shape kept;
  Shape result;
  for (std::uint32_t axis = 0; axis < x->shape.rank(); ++axis) {
    const bool goes = std::ranges::binary_search(axes, axis);
    if (!goes) order.push_back(axis);
    if (!goes) kept.append(x->shape[axis]);
    if (!goes || call.integer("keepdims", 1) != 0) result.append(goes ? 1 : x->shape[axis]);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  SHUNT_TRY_ASSIGN(Tensor y, builder.tensor(*x));
  if (!std::ranges::is_sorted(order)) y = builder.permuted(y, order);
  SHUNT_TRY_ASSIGN(const std::uint32_t rows, call.extents(kept, 0, kept.rank()));
  Shape gone;
  for (const std::uint32_t axis : axes) gone.append(x->shape[axis]);
  SHUNT_TRY_ASSIGN(const std::uint32_t columns, call.extents(gone, 0, gone.rank()));
  y = builder.reshaped(y, {rows, columns});
  y = builder.graph().add_node(op, std::span(&y, 1));
  return one(Builder::computed(builder.reshaped(y, result), x->type, result));
}

}  // namespace

Outputs matmul(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* a, call.input(0));
  SHUNT_TRY_ASSIGN(const Value* b, call.input(1));
  if (a->is_integer() || b->is_integer()) return call.unsupported("integers");
  if (a->shape.rank() < 2 || b->shape.rank() < 2)
    return call.unsupported(fmt::format("{} by {}: both need two axes", to_string(a->shape), to_string(b->shape)));
  if (a->shape.columns() != extent_from_end(b->shape, 1))
    return call.invalid(fmt::format("{} by {}", to_string(a->shape), to_string(b->shape)));
  SHUNT_TRY_ASSIGN(Value result, b->shape.rank() == 2 ? by_matrix(call, *a, *b) : by_matrices(call, *a, *b));
  return one(std::move(result));
}

Outputs gemm(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* a, call.input(0));
  SHUNT_TRY_ASSIGN(const Value* b, call.input(1));
  if (a->shape.rank() != 2 || b->shape.rank() != 2)
    return call.invalid(fmt::format("{} by {}", to_string(a->shape), to_string(b->shape)));
  Builder& builder = call.builder();
  constexpr std::uint32_t kAxes[] = {1, 0};
  SHUNT_TRY_ASSIGN(Tensor x, builder.tensor(*a));
  Shape rows = a->shape;
  if (call.integer("transA", 0) != 0) {
    x = builder.permuted(x, kAxes);
    rows = {a->shape[1], a->shape[0]};
  }
  const bool is_exchanged = call.integer("transB", 0) != 0;
  SHUNT_TRY_ASSIGN(const Tensor weight, is_exchanged ? builder.tensor(*b) : exchanged(call, *b));
  const std::uint32_t inner = b->shape[is_exchanged ? 1 : 0];
  if (rows[1] != inner) return call.invalid(fmt::format("{} by {}", to_string(a->shape), to_string(b->shape)));
  const Shape shape{rows[0], b->shape[is_exchanged ? 0 : 1]};
  Tensor y = builder.graph().linear(x, weight);
  if (const float alpha = call.real("alpha", 1); alpha != 1) y = builder.graph().scale(y, {{Attr::factor, alpha}});
  Value result = Builder::computed(y, a->type, shape);
  if (!call.has(2)) return one(std::move(result));
  SHUNT_TRY_ASSIGN(const Value* c, call.input(2));
  if (call.real("beta", 1) != 1) return call.unsupported(fmt::format("beta of {}", call.real("beta", 1)));
  SHUNT_TRY_ASSIGN(result, binary(call, Op::add, result, *c));
  if (result.shape != shape)
    return call.invalid(fmt::format("C is {}, the product {}", to_string(c->shape), to_string(shape)));
  return one(std::move(result));
}

Outputs softmax(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  const std::uint32_t rank = x->shape.rank();
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", -1), rank));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor operand, builder.tensor(*x));
  const Tensor y = builder.graph().softmax(builder.with_axis_last(operand, rank, axis), {});
  return one(Builder::computed(builder.with_last_axis_at(y, rank, axis), x->type, x->shape));
}

Outputs layer_normalization(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const Value* scale, call.input(1));
  const std::uint32_t rank = x->shape.rank();
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", -1), rank));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const std::uint32_t rows, call.extents(x->shape, 0, axis));
  SHUNT_TRY_ASSIGN(const std::uint32_t columns, call.extents(x->shape, axis, rank));
  SHUNT_TRY_ASSIGN(Tensor y, builder.tensor(*x));
  y = builder.graph().layer_norm(builder.reshaped(y, {rows, columns}), {{Attr::epsilon, call.real("epsilon", 1e-5F)}});
  SHUNT_TRY_ASSIGN(Value result,
                   binary(call, Op::mul, Builder::computed(builder.reshaped(y, x->shape), x->type, x->shape), *scale));
  if (call.has(2)) {
    SHUNT_TRY_ASSIGN(const Value* bias, call.input(2));
    SHUNT_TRY_ASSIGN(result, binary(call, Op::add, result, *bias));
  }
  if (result.shape != x->shape) return call.invalid("scale or bias is larger than x");
  return one(std::move(result));
}

Outputs reduce_sum(const Call& call) { return reduced(call, Op::reduce_sum); }
Outputs reduce_mean(const Call& call) { return reduced(call, Op::reduce_mean); }
Outputs reduce_max(const Call& call) { return reduced(call, Op::reduce_max); }

Outputs argmax(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  const std::uint32_t rank = x->shape.rank();
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", 0), rank));
  if (call.integer("select_last_index", 0) != 0) return call.unsupported("select_last_index");
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor operand, builder.tensor(*x));
  const Tensor y = builder.graph().argmax(builder.with_axis_last(operand, rank, axis));
  Shape shape;
  for (std::uint32_t i = 0; i < rank; ++i)
    if (i != axis || call.integer("keepdims", 1) != 0) shape.append(i == axis ? 1 : x->shape[i]);
  return one(Builder::computed(builder.reshaped(y, shape), Type::i64, shape));
}

Outputs top_k(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> k, call.known_integers(1));
  const std::uint32_t rank = x->shape.rank();
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", -1), rank));
  if (call.integer("largest", 1) == 0) return call.unsupported("the smallest elements (largest = 0)");
  if (k.size() != 1 || k[0] < 1 || k[0] > x->shape[axis])
    return call.invalid(fmt::format("k is no number from 1 to {}", x->shape[axis]));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor operand, builder.tensor(*x));
  const Tensor last = builder.with_axis_last(operand, rank, axis);
  const Tensor ids = builder.graph().top_k(last, {{Attr::k, static_cast<std::uint32_t>(k[0])}});
  const Tensor values = builder.graph().take(last, ids);
  Shape shape = x->shape;
  shape.set(axis, static_cast<std::uint32_t>(k[0]));
  return std::vector<Value>{Builder::computed(builder.with_last_axis_at(values, rank, axis), x->type, shape),
                            Builder::computed(builder.with_last_axis_at(ids, rank, axis), Type::i64, shape)};
}

}  // namespace shunt::onnx
