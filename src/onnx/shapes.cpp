// Operators that only move elements, and those on shapes, which are known before the graph runs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "onnx/translators.h"

namespace shunt::onnx {
namespace {

// Returns the same elements with another shape.
Result<Value> with_shape(const Call& call, const Value& x, const Shape& shape) {
  if (shape.elements() != x.shape.elements())
    return call.invalid(fmt::format("{} does not become {}", to_string(x.shape), to_string(shape)));
  Value result = x;
  result.shape = shape;
  if (!x.is_known()) result.tensor = call.builder().reshaped(x.tensor, shape);
  return result;
}

// Reads axes from an attribute or, since operator set 13, an input. Empty if absent.
Result<std::span<const std::int64_t>> axes_of(const Call& call, std::size_t index) {
  if (call.has(index)) return call.known_integers(index);
  return call.integers("axes");
}

Constant integers(std::vector<std::int64_t> numbers) {
  return {.is_integer = true, .floats = {}, .integers = std::move(numbers)};
}

// Picks `count` indices of axis `axis` of a known value: index_at(0), index_at(1), ...
template <class IndexAt>
Result<Value> picked(const Call& call, const Value& x, std::uint32_t axis, std::uint32_t count,
                     const IndexAt& index_at) {
  SHUNT_TRY_ASSIGN(const std::uint64_t outer, call.extents(x.shape, 0, axis));
  SHUNT_TRY_ASSIGN(const std::uint64_t inner, call.extents(x.shape, axis + 1, x.shape.rank()));
  const auto elements = checked_product(outer, inner, count);
  if (!elements)
    return call.unsupported(fmt::format("{} of the indices of axis {} of {}", count, axis, to_string(x.shape)));
  SHUNT_TRY_ASSIGN(Constant result, call.zeros(x.constant->is_integer, *elements));
  const auto fill = [&](auto& to, const auto& from) {
    auto next = to.begin();
    for (std::uint64_t o = 0; *elements != 0 && o < outer; ++o)
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto begin = from.begin() + static_cast<std::ptrdiff_t>((o * x.shape[axis] + index_at(i)) * inner);
        next = std::copy_n(begin, inner, next);
      }
  };
  if (result.is_integer)
    fill(result.integers, x.constant->integers);
  else
    fill(result.floats, x.constant->floats);
  Shape shape = x.shape;
  shape.set(axis, count);
  return Builder::known(std::move(result), x.type, shape);
}

// Cuts `count` indices, starting at `begin`.
Result<Value> cut(const Call& call, const Value& x, std::uint32_t axis, std::uint32_t begin, std::uint32_t count) {
  if (x.is_known()) return picked(call, x, axis, count, [&](std::uint32_t i) { return begin + i; });
  Shape shape = x.shape;
  shape.set(axis, count);
  return Builder::computed(call.builder().sliced(x.tensor, axis, begin, count), x.type, shape);
}

}  // namespace

Outputs constant(const Call& call) {
  if (const Attribute* value = call.attribute("value"); value != nullptr && value->tensor) {
    if (value->tensor->is_external) return call.unsupported("external data in a Constant");
    const auto shape = shape_from(value->tensor->dims);
    if (!shape) return call.invalid(shape.error().message);
    auto elements = constant_from(call.builder().budget(), *value->tensor, *shape, {});
    if (!elements) return call.here(std::move(elements).error());
    return one(Builder::known(std::move(*elements), value->tensor->type, *shape));
  }
  if (const Attribute* value = call.attribute("value_int"); value != nullptr)
    return one(Builder::known(integers({value->integer.value_or(0)}), Type::i64, {}));
  if (const Attribute* value = call.attribute("value_float"); value != nullptr)
    return one(Builder::known({.floats = {value->real.value_or(0)}, .integers = {}}, Type::f32, {}));
  if (const Attribute* value = call.attribute("value_ints"); value != nullptr)
    return one(
        Builder::known(integers(value->integers), Type::i64, {static_cast<std::uint32_t>(value->integers.size())}));
  if (const Attribute* value = call.attribute("value_floats"); value != nullptr)
    return one(Builder::known({.floats = value->reals, .integers = {}}, Type::f32,
                              {static_cast<std::uint32_t>(value->reals.size())}));
  return call.unsupported("a constant of another kind than a tensor or numbers");
}

Outputs constant_of_shape(const Call& call) {
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> dims, call.known_integers(0));
  const auto shape = shape_from(dims);
  if (!shape) return call.invalid(shape.error().message);
  Constant element{.floats = {0.0F}, .integers = {}};
  Type type = Type::f32;
  if (const Attribute* value = call.attribute("value"); value != nullptr && value->tensor) {
    auto made = constant_from(call.builder().budget(), *value->tensor, Shape{1}, {});
    if (!made) return call.here(std::move(made).error());
    element = std::move(*made);
    type = value->tensor->type;
  }
  SHUNT_TRY_ASSIGN(Constant elements, call.repeated(element, Shape{}, *shape));
  return one(Builder::known(std::move(elements), type, *shape));
}

Outputs shape(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  if (call.attribute("start") != nullptr || call.attribute("end") != nullptr)
    return call.unsupported("a part of the shape (start, end)");
  std::vector<std::int64_t> extents;
  for (std::uint32_t axis = 0; axis < x->shape.rank(); ++axis) extents.push_back(x->shape[axis]);
  const auto rank = static_cast<std::uint32_t>(extents.size());
  return one(Builder::known(integers(std::move(extents)), Type::i64, {rank}));
}

Outputs identity(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  return one(*x);
}

Outputs cast(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  Value result = *x;
  result.type = static_cast<Type>(call.integer("to", 0));
  const bool to_integer = result.is_integer();
  const bool to_float = result.type == Type::f32 || result.type == Type::f16 || result.type == Type::bf16;
  if (!to_integer && !to_float) return call.unsupported(fmt::format("to {}", name_of(result.type)));
  if (x->is_known()) {
    const Constant& from = *x->constant;
    if (from.is_integer == to_integer) return one(std::move(result));  // keeps the elements
    SHUNT_TRY_ASSIGN(Constant elements, call.zeros(to_integer, from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from.is_integer) {
        elements.floats[i] = static_cast<float>(from.integers[i]);
        continue;
      }
      const float number = from.floats[i];
      if (!(number > -9e18F && number < 9e18F)) return call.invalid(fmt::format("{} is no integer", number));
      elements.integers[i] = static_cast<std::int64_t>(number);
    }
    return one(Builder::known(std::move(elements), result.type, x->shape));
  }
  if (x->is_integer() && to_integer) return one(std::move(result));
  const DType dtype = to_integer                  ? DType::I32
                      : result.type == Type::f16  ? DType::F16
                      : result.type == Type::bf16 ? DType::BF16
                                                  : DType::F32;
  result.tensor = call.builder().graph().copy(x->tensor, {{Attr::to, dtype}});
  return one(std::move(result));
}

Outputs reshape(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> wanted, call.known_integers(1));
  if (wanted.size() > kMaxRank) return call.unsupported(fmt::format("{} axes; at most {}", wanted.size(), kMaxRank));
  std::vector<std::int64_t> dims(wanted.begin(), wanted.end());
  const bool zero_stays = call.integer("allowzero", 0) == 0;
  std::uint64_t rest = 1;
  std::size_t open = dims.size();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0 && zero_stays) {
      if (axis >= x->shape.rank())
        return call.invalid(fmt::format("axis {} is to stay, of {}", axis, to_string(x->shape)));
      dims[axis] = x->shape[axis];
    }
    if (dims[axis] == -1) {
      if (open != dims.size()) return call.invalid("two axes are left open");
      open = axis;
    } else if (dims[axis] < 0 || dims[axis] > std::numeric_limits<std::int32_t>::max()) {
      return call.invalid(fmt::format("an axis of {}", dims[axis]));
    } else if (const auto more = checked_product(rest, dims[axis])) {
      rest = *more;
    } else {
      return call.invalid("more elements than 64 bits can count");
    }
  }
  if (open != dims.size()) dims[open] = rest == 0 ? 0 : static_cast<std::int64_t>(x->shape.elements() / rest);
  const auto shape = shape_from(dims);
  if (!shape) return call.unsupported(shape.error().message);
  SHUNT_TRY_ASSIGN(Value result, with_shape(call, *x, *shape));
  return one(std::move(result));
}

Outputs flatten(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  const std::int64_t axis = call.integer("axis", 1);
  const std::int64_t from = axis < 0 ? axis + x->shape.rank() : axis;
  if (from < 0 || from > x->shape.rank()) return call.invalid(fmt::format("axis {} of {}", axis, to_string(x->shape)));
  SHUNT_TRY_ASSIGN(const std::uint32_t outer, call.extents(x->shape, 0, static_cast<std::size_t>(from)));
  SHUNT_TRY_ASSIGN(const std::uint32_t inner, call.extents(x->shape, static_cast<std::size_t>(from), x->shape.rank()));
  SHUNT_TRY_ASSIGN(Value result, with_shape(call, *x, {outer, inner}));
  return one(std::move(result));
}

Outputs squeeze(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> axes, axes_of(call, 1));
  if (axes.size() > x->shape.rank())
    return call.invalid(fmt::format("{} axes of {}", axes.size(), to_string(x->shape)));
  std::vector<bool> gone(x->shape.rank(), false);
  for (const std::int64_t each : axes) {
    SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(each, x->shape.rank()));
    if (x->shape[axis] != 1) return call.invalid(fmt::format("axis {} of {} is not 1", axis, to_string(x->shape)));
    gone[axis] = true;
  }
  Shape shape;
  for (std::uint32_t axis = 0; axis < x->shape.rank(); ++axis)
    if (!(gone[axis] || (axes.empty() && x->shape[axis] == 1))) shape.append(x->shape[axis]);
  SHUNT_TRY_ASSIGN(Value result, with_shape(call, *x, shape));
  return one(std::move(result));
}

Outputs unsqueeze(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> axes, axes_of(call, 1));
  const std::size_t rank = x->shape.rank() + axes.size();
  if (rank > kMaxRank) return call.unsupported(fmt::format("{} axes; at most {}", rank, kMaxRank));
  std::vector<bool> made(rank, false);
  for (const std::int64_t each : axes) {
    SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(each, static_cast<std::uint32_t>(rank)));
    if (made[axis]) return call.invalid(fmt::format("axis {} twice", axis));
    made[axis] = true;
  }
  Shape shape;
  std::uint32_t next = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) shape.append(made[axis] ? 1 : x->shape[next++]);
  SHUNT_TRY_ASSIGN(Value result, with_shape(call, *x, shape));
  return one(std::move(result));
}

Outputs transpose(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  const std::uint32_t rank = x->shape.rank();
  const std::span<const std::int64_t> named = call.integers("perm");
  std::vector<std::int64_t> order(named.begin(), named.end());
  if (order.empty())
    for (std::uint32_t axis = rank; axis-- > 0;) order.push_back(axis);
  std::vector<std::uint32_t> axes;
  Shape shape;
  for (const std::int64_t each : order) {
    SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(each, rank));
    if (std::ranges::find(axes, axis) != axes.end()) return call.invalid(fmt::format("axis {} twice", axis));
    axes.push_back(axis);
    shape.append(x->shape[axis]);
  }
  if (axes.size() != rank) return call.invalid(fmt::format("{} axes for {}", axes.size(), to_string(x->shape)));
  if (x->is_known()) {
    SHUNT_TRY_ASSIGN(Constant elements, call.transposed(*x->constant, x->shape, axes));
    return one(Builder::known(std::move(elements), x->type, shape));
  }
  return one(Builder::computed(call.builder().permuted(x->tensor, axes), x->type, shape));
}

namespace {

// Joins known parts along an axis.
Result<Value> concatenated(const Call& call, std::span<const Value* const> parts, const Shape& shape,
                           std::uint32_t axis) {
  const bool is_integer = parts.front()->constant->is_integer;
  for (const Value* part : parts)
    if (part->constant->is_integer != is_integer) return call.invalid("integers and floats together");
  SHUNT_TRY_ASSIGN(const std::uint32_t outer, call.extents(shape, 0, axis));
  SHUNT_TRY_ASSIGN(Constant result, call.zeros(is_integer, shape.elements()));
  const auto fill = [&](auto& to, auto member) {
    auto next = to.begin();
    for (std::uint32_t o = 0; !to.empty() && o < outer; ++o)
      for (const Value* part : parts) {
        const std::size_t each = part->constant->size() / outer;
        next = std::copy_n(((*part->constant).*member).begin() + static_cast<std::ptrdiff_t>(o * each), each, next);
      }
  };
  if (is_integer)
    fill(result.integers, &Constant::integers);
  else
    fill(result.floats, &Constant::floats);
  return Builder::known(std::move(result), parts.front()->type, shape);
}

}  // namespace

Outputs concat(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* first, call.input(0));
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", 0), first->shape.rank()));
  std::vector<const Value*> parts;
  Shape shape = first->shape;
  bool all_known = true;
  std::optional<std::uint32_t> extent = 0;
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    SHUNT_TRY_ASSIGN(const Value* part, call.input(i));
    if (part->shape.rank() != shape.rank()) return call.invalid("parts of different ranks");
    for (std::uint32_t other = 0; other < shape.rank(); ++other)
      if (other != axis && part->shape[other] != shape[other]) return call.invalid("parts of different extents");
    extent = checked_sum<std::uint32_t>(*extent, part->shape[axis]);
    if (!extent) return call.unsupported(fmt::format("axis {} of the result has more than 2^32 - 1 entries", axis));
    all_known = all_known && part->is_known();
    parts.push_back(part);
  }
  shape.set(axis, *extent);
  if (all_known) {
    SHUNT_TRY_ASSIGN(Value result, concatenated(call, parts, shape, axis));
    return one(std::move(result));
  }
  std::vector<Tensor> tensors;
  for (const Value* part : parts) {
    SHUNT_TRY_ASSIGN(const Tensor tensor, call.builder().tensor(*part));
    tensors.push_back(tensor);
  }
  return one(Builder::computed(call.builder().joined(std::move(tensors), axis), first->type, shape));
}

Outputs slice(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> starts, call.known_integers(1));
  SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> ends, call.known_integers(2));
  std::array<std::int64_t, kMaxRank> leading{};
  std::iota(leading.begin(), leading.end(), 0);
  if (starts.size() > x->shape.rank())
    return call.invalid(fmt::format("{} starts for {}", starts.size(), to_string(x->shape)));
  std::span<const std::int64_t> axes = std::span(leading).first(starts.size());
  if (call.has(3)) {
    SHUNT_TRY_ASSIGN(axes, call.known_integers(3));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size()) return call.invalid("starts, ends and axes differ");
  if (call.has(4)) {
    SHUNT_TRY_ASSIGN(const std::span<const std::int64_t> steps, call.known_integers(4));
    if (steps.size() != starts.size()) return call.invalid("starts and steps differ");
    if (std::ranges::any_of(steps, [](std::int64_t step) { return step != 1; }))
      return call.unsupported("steps other than 1");
  }
  Value result = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(axes[i], x->shape.rank()));
    const std::int64_t extent = result.shape[axis];
    const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
    const std::int64_t begin = place(std::max<std::int64_t>(starts[i], -extent));
    const std::int64_t end = std::max(begin, place(std::max<std::int64_t>(ends[i], -extent - 1)));
    if (begin == 0 && end == extent) continue;
    if (begin == end) return call.unsupported("a result without elements");
    SHUNT_TRY_ASSIGN(
        result, cut(call, result, axis, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)));
  }
  return one(std::move(result));
}

Outputs split(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", 0), x->shape.rank()));
  const auto count = static_cast<std::int64_t>(call.node().outputs.size());
  if (count == 0) return call.invalid("it has no outputs");
  std::vector<std::int64_t> equal;
  std::span<const std::int64_t> sizes;
  if (call.has(1)) {
    SHUNT_TRY_ASSIGN(sizes, call.known_integers(1));
    if (std::ssize(sizes) != count) return call.invalid(fmt::format("{} parts for {} outputs", sizes.size(), count));
  } else {
    const std::int64_t each = (x->shape[axis] + count - 1) / count;
    for (std::int64_t left = x->shape[axis]; left > 0; left -= each) equal.push_back(std::min(each, left));
    sizes = equal;
  }
  std::vector<Value> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    if (size <= 0 || size > x->shape[axis] - begin)
      return call.invalid(fmt::format("a part of {} from {} of {}", size, begin, x->shape[axis]));
    SHUNT_TRY_ASSIGN(Value part,
                     cut(call, *x, axis, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size)));
    parts.push_back(std::move(part));
    begin += size;
  }
  return parts;
}

Outputs gather(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const Value* ids, call.input(1));
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", 0), x->shape.rank()));
  if (ids->is_known() ? !ids->constant->is_integer : !ids->is_integer())
    return call.invalid(fmt::format("indices of {}", name_of(ids->type)));
  Shape shape;
  if (x->shape.rank() - 1 + ids->shape.rank() > kMaxRank)
    return call.unsupported(fmt::format("more than {} axes", kMaxRank));
  for (std::uint32_t i = 0; i < axis; ++i) shape.append(x->shape[i]);
  for (std::uint32_t i = 0; i < ids->shape.rank(); ++i) shape.append(ids->shape[i]);
  for (std::uint32_t i = axis + 1; i < x->shape.rank(); ++i) shape.append(x->shape[i]);
  if (x->is_known() && ids->is_known()) {
    SHUNT_TRY(call.builder().budget().take(ids->constant->size(), sizeof(std::uint32_t)));
    std::vector<std::uint32_t> indices;
    for (const std::int64_t each : ids->constant->integers) {
      SHUNT_TRY_ASSIGN(const std::uint32_t index, call.axis_in(each, x->shape[axis]));
      indices.push_back(index);
    }
    SHUNT_TRY_ASSIGN(Value result, picked(call, *x, axis, static_cast<std::uint32_t>(indices.size()),
                                          [&](std::uint32_t i) { return indices[i]; }));
    result.shape = shape;
    return one(std::move(result));
  }
  if (ids->is_known() && ids->constant->size() == 1) {  // one index: a slice without its axis
    SHUNT_TRY_ASSIGN(const std::uint32_t index, call.axis_in(ids->constant->integers[0], x->shape[axis]));
    SHUNT_TRY_ASSIGN(const Value row, cut(call, *x, axis, index, 1));
    SHUNT_TRY_ASSIGN(Value result, with_shape(call, row, shape));
    return one(std::move(result));
  }
  if (axis != 0 || x->is_integer())
    return call.unsupported("indices along another axis than the first, or of integers");
  SHUNT_TRY_ASSIGN(const std::uint32_t rows, call.extents(ids->shape, 0, ids->shape.rank()));
  SHUNT_TRY_ASSIGN(const std::uint32_t columns, call.extents(x->shape, 1, x->shape.rank()));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor table, builder.tensor(*x));
  SHUNT_TRY_ASSIGN(const Tensor which, builder.tensor(*ids));
  const Tensor found =
      builder.graph().gather(builder.reshaped(table, {x->shape[0], columns}), builder.reshaped(which, {rows}));
  return one(Builder::computed(builder.reshaped(found, shape), Type::f32, shape));
}

}  // namespace shunt::onnx
