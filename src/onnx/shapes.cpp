// Operators that move elements and compute nothing, and those on shapes, which are known before the graph runs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "onnx/translators.h"

namespace shunt::onnx {
namespace {

// The same elements under another shape.
Result<Value> with_shape(const Call& call, const Value& x, const Shape& shape) {
  if (shape.elements() != x.shape.elements())
    return call.invalid(fmt::format("{} does not become {}", to_string(x.shape), to_string(shape)));
  Value result = x;
  result.shape = shape;
  if (!x.is_known()) result.tensor = call.builder().reshaped(x.tensor, shape);
  return result;
}

// What an attribute or, from operator set 13 on, an input says. Nothing: absent.
Result<std::vector<std::int64_t>> axes_of(const Call& call, std::size_t index) {
  if (call.has(index)) return call.known_integers(index);
  return call.integers("axes");
}

Constant integers(std::vector<std::int64_t> numbers) {
  return {.is_integer = true, .floats = {}, .integers = std::move(numbers)};
}

// Indices of axis `axis` of a known value.
Value picked(const Value& x, std::uint32_t axis, std::span<const std::uint32_t> indices) {
  std::uint64_t outer = 1;
  std::uint64_t inner = 1;
  for (std::uint32_t i = 0; i < x.shape.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.shape[i];
  Constant result{.is_integer = x.constant->is_integer, .floats = {}, .integers = {}};
  for (std::uint64_t o = 0; o < outer; ++o)
    for (const std::uint32_t index : indices)
      for (std::uint64_t i = 0; i < inner; ++i) {
        const std::size_t from = (o * x.shape[axis] + index) * inner + i;
        if (result.is_integer)
          result.integers.push_back(x.constant->integers[from]);
        else
          result.floats.push_back(x.constant->floats[from]);
      }
  Shape shape = x.shape;
  shape.set(axis, static_cast<std::uint32_t>(indices.size()));
  return Builder::known(std::move(result), x.type, shape);
}

// `count` indices from `begin` on.
Value cut(const Call& call, const Value& x, std::uint32_t axis, std::uint32_t begin, std::uint32_t count) {
  if (x.is_known()) {
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < count; ++i) indices.push_back(begin + i);
    return picked(x, axis, indices);
  }
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
    auto elements = constant_from(*value->tensor, *shape, {});
    if (!elements) return call.invalid(elements.error().message);
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
  SHUNT_TRY_ASSIGN(const std::vector<std::int64_t> dims, call.known_integers(0));
  const auto shape = shape_from(dims);
  if (!shape) return call.invalid(shape.error().message);
  SHUNT_TRY(call.can_make(*shape));
  Constant element{.floats = {0.0F}, .integers = {}};
  Type type = Type::f32;
  if (const Attribute* value = call.attribute("value"); value != nullptr && value->tensor) {
    auto made = constant_from(*value->tensor, Shape{1}, {});
    if (!made) return call.invalid(made.error().message);
    element = std::move(*made);
    type = value->tensor->type;
  }
  return one(Builder::known(repeated(element, Shape{}, *shape), type, *shape));
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
    Constant elements = *x->constant;
    if (elements.is_integer && !to_integer) {
      for (const std::int64_t number : elements.integers) elements.floats.push_back(static_cast<float>(number));
      elements = {.is_integer = false, .floats = std::move(elements.floats), .integers = {}};
    } else if (!elements.is_integer && to_integer) {
      for (const float number : elements.floats) {
        if (!(number > -9e18F && number < 9e18F)) return call.invalid(fmt::format("{} is no integer", number));
        elements.integers.push_back(static_cast<std::int64_t>(number));
      }
      elements = {.is_integer = true, .floats = {}, .integers = std::move(elements.integers)};
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
  SHUNT_TRY_ASSIGN(std::vector<std::int64_t> dims, call.known_integers(1));
  std::uint64_t rest = 1;
  std::size_t open = dims.size();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0 && call.integer("allowzero", 0) == 0) {
      if (axis >= x->shape.rank())
        return call.invalid(fmt::format("axis {} is to stay, of {}", axis, to_string(x->shape)));
      dims[axis] = x->shape[axis];
    }
    if (dims[axis] == -1) {
      if (open != dims.size()) return call.invalid("two axes are left open");
      open = axis;
    } else if (dims[axis] < 0 || dims[axis] > std::numeric_limits<std::int32_t>::max()) {
      return call.invalid(fmt::format("an axis of {}", dims[axis]));
    } else if (__builtin_mul_overflow(rest, static_cast<std::uint64_t>(dims[axis]), &rest)) {
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
  std::uint32_t outer = 1;
  std::uint32_t inner = 1;
  for (std::uint32_t i = 0; i < x->shape.rank(); ++i) (i < from ? outer : inner) *= x->shape[i];
  SHUNT_TRY_ASSIGN(Value result, with_shape(call, *x, {outer, inner}));
  return one(std::move(result));
}

Outputs squeeze(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::vector<std::int64_t> axes, axes_of(call, 1));
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
  SHUNT_TRY_ASSIGN(const std::vector<std::int64_t> axes, axes_of(call, 1));
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
  std::vector<std::int64_t> order = call.integers("perm");
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
  if (x->is_known()) return one(Builder::known(transposed(*x->constant, x->shape, axes), x->type, shape));
  return one(Builder::computed(call.builder().permuted(x->tensor, axes), x->type, shape));
}

Outputs concat(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* first, call.input(0));
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", 0), first->shape.rank()));
  std::vector<const Value*> parts;
  Shape shape = first->shape;
  bool all_known = true;
  std::uint32_t extent = 0;
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    SHUNT_TRY_ASSIGN(const Value* part, call.input(i));
    if (part->shape.rank() != shape.rank()) return call.invalid("parts of different ranks");
    for (std::uint32_t other = 0; other < shape.rank(); ++other)
      if (other != axis && part->shape[other] != shape[other]) return call.invalid("parts of different extents");
    extent += part->shape[axis];
    all_known = all_known && part->is_known();
    parts.push_back(part);
  }
  shape.set(axis, extent);
  if (!all_known) {
    SHUNT_TRY_ASSIGN(Tensor joined, call.builder().tensor(*first));
    for (std::size_t i = 1; i < parts.size(); ++i) {
      SHUNT_TRY_ASSIGN(const Tensor part, call.builder().tensor(*parts[i]));
      joined = call.builder().graph().concat(joined, part, {{Attr::axis, axis}});
    }
    return one(Builder::computed(joined, first->type, shape));
  }
  Constant result{.is_integer = first->constant->is_integer, .floats = {}, .integers = {}};
  std::uint64_t outer = 1;
  for (std::uint32_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::uint64_t o = 0; o < outer; ++o)
    for (const Value* part : parts) {
      if (part->constant->is_integer != result.is_integer) return call.invalid("integers and floats together");
      const std::size_t each = part->constant->size() / outer;
      const auto begin = static_cast<std::ptrdiff_t>(o * each);
      const auto end = begin + static_cast<std::ptrdiff_t>(each);
      const auto append = [&](auto& to, const auto& from) {
        to.insert(to.end(), from.begin() + begin, from.begin() + end);
      };
      if (result.is_integer)
        append(result.integers, part->constant->integers);
      else
        append(result.floats, part->constant->floats);
    }
  return one(Builder::known(std::move(result), first->type, shape));
}

Outputs slice(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::vector<std::int64_t> starts, call.known_integers(1));
  SHUNT_TRY_ASSIGN(const std::vector<std::int64_t> ends, call.known_integers(2));
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (call.has(3)) {
    SHUNT_TRY_ASSIGN(axes, call.known_integers(3));
  }
  if (call.has(4)) {
    SHUNT_TRY_ASSIGN(const std::vector<std::int64_t> steps, call.known_integers(4));
    if (std::ranges::any_of(steps, [](std::int64_t step) { return step != 1; }))
      return call.unsupported("steps other than 1");
  }
  if (ends.size() != starts.size() || axes.size() != starts.size()) return call.invalid("starts, ends and axes differ");
  Value result = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(axes[i], x->shape.rank()));
    const std::int64_t extent = result.shape[axis];
    const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
    const std::int64_t begin = place(std::max<std::int64_t>(starts[i], -extent));
    const std::int64_t end = std::max(begin, place(std::max<std::int64_t>(ends[i], -extent - 1)));
    if (begin == 0 && end == extent) continue;
    if (begin == end) return call.unsupported("a result without elements");
    result = cut(call, result, axis, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin));
  }
  return one(std::move(result));
}

Outputs split(const Call& call) {
  SHUNT_TRY_ASSIGN(const Value* x, call.input(0));
  SHUNT_TRY_ASSIGN(const std::uint32_t axis, call.axis_in(call.integer("axis", 0), x->shape.rank()));
  std::vector<std::int64_t> sizes;
  if (call.has(1)) {
    SHUNT_TRY_ASSIGN(sizes, call.known_integers(1));
  } else {
    const auto parts = static_cast<std::int64_t>(call.node().outputs.size());
    const std::int64_t each = (x->shape[axis] + parts - 1) / parts;
    for (std::int64_t left = x->shape[axis]; left > 0; left -= each) sizes.push_back(std::min(each, left));
  }
  std::vector<Value> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    if (size <= 0 || size > x->shape[axis] - begin)
      return call.invalid(fmt::format("a part of {} from {} of {}", size, begin, x->shape[axis]));
    parts.push_back(cut(call, *x, axis, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size)));
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
    SHUNT_TRY(call.can_make(shape));
    std::vector<std::uint32_t> indices;
    for (const std::int64_t each : ids->constant->integers) {
      SHUNT_TRY_ASSIGN(const std::uint32_t index, call.axis_in(each, x->shape[axis]));
      indices.push_back(index);
    }
    Value result = picked(*x, axis, indices);
    result.shape = shape;
    return one(std::move(result));
  }
  if (ids->is_known() && ids->constant->size() == 1) {  // one index: a cut without its axis
    SHUNT_TRY_ASSIGN(const std::uint32_t index, call.axis_in(ids->constant->integers[0], x->shape[axis]));
    SHUNT_TRY_ASSIGN(Value result, with_shape(call, cut(call, *x, axis, index, 1), shape));
    return one(std::move(result));
  }
  if (axis != 0 || x->is_integer())
    return call.unsupported("indices along another axis than the first, or of integers");
  const auto rows = static_cast<std::uint32_t>(ids->shape.elements());
  const auto columns = static_cast<std::uint32_t>(x->shape.elements() / std::max(1U, x->shape[0]));
  Builder& builder = call.builder();
  SHUNT_TRY_ASSIGN(const Tensor table, builder.tensor(*x));
  SHUNT_TRY_ASSIGN(const Tensor which, builder.tensor(*ids));
  const Tensor found =
      builder.graph().gather(builder.reshaped(table, {x->shape[0], columns}), builder.reshaped(which, {rows}));
  return one(Builder::computed(builder.reshaped(found, shape), Type::f32, shape));
}

}  // namespace shunt::onnx
