#include "ops/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace shunt {
namespace {

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, std::move(message)); }

std::string text_of(const Operand& operand) {
  return fmt::format("{}{}", name_of(operand.dtype), to_string(operand.shape));
}

bool is_floating(const Operand& operand) { return info_of(operand.dtype).kind == DTypeKind::floating; }

Status need_floating(std::string_view name, const Operand& operand) {
  if (!is_floating(operand))
    return invalid(fmt::format("{} must be of a floating dtype, is {}", name, text_of(operand)));
  return {};
}

Status need_rank(std::string_view name, const Operand& operand, std::uint32_t rank) {
  if (operand.shape.rank() != rank)
    return invalid(fmt::format("{} must have {} axes, is {}", name, rank, text_of(operand)));
  return {};
}

Status need(std::string_view name, const Operand& operand, DType dtype, const Shape& shape) {
  if (operand.dtype != dtype || operand.shape != shape)
    return invalid(fmt::format("{} must be {}{}, is {}", name, name_of(dtype), to_string(shape), text_of(operand)));
  return {};
}

// Blocks are made of neighbouring elements of one row.
Status need_whole_rows(std::string_view name, const Operand& operand) {
  if (operand.shape.rank() == 0 || (operand.shape.rank() == 1 && operand.extent != Extent::fixed))
    return invalid(fmt::format("{} must have rows, is {}", name, text_of(operand)));
  if (!operand.has_contiguous_rows())
    return invalid(fmt::format("{} {} is a view whose rows are not contiguous; copy it first", name, text_of(operand)));
  return {};
}

// `small` equals the last axes of `large`.
bool is_suffix(const Shape& small, const Shape& large) {
  if (small.rank() > large.rank()) return false;
  for (std::size_t axis = 0; axis < small.rank(); ++axis)
    if (small[axis] != large[large.rank() - small.rank() + axis]) return false;
  return true;
}

ResultShape value(DType dtype, const Shape& shape, Extent extent) {
  return {.operand = Operand::contiguous(dtype, shape, TensorKind::value, extent)};
}

// What an op that makes one element of each row gives: a row alone becomes an axis of one.
ResultShape one_of_each_row(DType dtype, const Operand& x) {
  Shape shape;
  for (std::size_t axis = 0; axis + 1 < x.shape.rank(); ++axis) shape.append(x.shape[axis]);
  if (shape.rank() == 0) shape.append(1);
  return value(dtype, shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

Status need_elements(const Operand& x) {
  if (x.shape.rank() == 0 || x.shape.columns() == 0)
    return invalid(fmt::format("{} has no elements to compare", text_of(x)));
  return {};
}

bool present(InputOperands inputs, std::size_t index) { return index < inputs.size() && inputs[index] != nullptr; }

Status need_rotary(const Operand& x, const Attributes& attributes) {
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_rank("x", x, 3));
  const std::uint32_t dims = attributes.u32(Attr::rotary_dims);
  const std::uint32_t head_dim = x.shape[2];
  if (dims > head_dim || dims % 2 != 0 || (dims == 0 && head_dim % 2 != 0))
    return invalid(fmt::format("rotary_dims {} must be even and at most the head size {}", dims, head_dim));
  if (!(attributes.f32(Attr::rotary_base) > 0))
    return invalid(fmt::format("rotary_base {} must be positive", attributes.f32(Attr::rotary_base)));
  if (attributes.u32(Attr::rotary_halves) > 1) return invalid("rotary_halves must be 0 or 1");
  return {};
}

// positions [tokens], sequences [tokens], pages [sequences, pages of each]
Status need_page_table(InputOperands inputs, std::size_t first, std::uint32_t tokens) {
  SHUNT_TRY(need("positions", *inputs[first], DType::I32, Shape{tokens}));
  SHUNT_TRY(need("sequences", *inputs[first + 1], DType::I32, Shape{tokens}));
  SHUNT_TRY(need_rank("pages", *inputs[first + 2], 2));
  if (inputs[first + 2]->dtype != DType::I32) return invalid("pages must be I32");
  return {};
}

}  // namespace

namespace shape_rule {

Result<ResultShape> same(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  if (x.shape.rank() == 0) return invalid("x must have at least one axis");
  if (present(inputs, 1)) {
    SHUNT_TRY(need_floating("second operand", *inputs[1]));
    if (!is_suffix(inputs[1]->shape, x.shape))
      return invalid(fmt::format("{} does not equal the last axes of {}", text_of(*inputs[1]), text_of(x)));
  }
  return value(x.dtype, x.shape, x.extent);
}

Result<ResultShape> elementwise(InputOperands inputs, const Attributes&) {
  const Operand& first = *inputs[0];
  Extent extent = first.extent;
  for (const Operand* input : inputs) {
    SHUNT_TRY(need_floating("operand", *input));
    if (!is_suffix(input->shape, first.shape))
      return invalid(fmt::format("{} does not equal the last axes of {}", text_of(*input), text_of(first)));
  }
  return value(first.dtype, first.shape, extent);
}

Result<ResultShape> reshape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Shape& dims = attributes.shape(Attr::dims);
  SHUNT_TRY(bytes_of(x.dtype, dims));
  if (dims.elements() != x.shape.elements())
    return invalid(
        fmt::format("{} has {} elements, {} has {}", text_of(x), x.shape.elements(), to_string(dims), dims.elements()));
  if (!x.is_contiguous()) return invalid(fmt::format("{} is a strided view; copy it first", text_of(x)));
  if (x.extent != Extent::fixed && (dims.rank() == 0 || dims[0] != x.shape[0]))
    return invalid(fmt::format("axis 0 of {} is a bucket and cannot be reshaped to {}", text_of(x), to_string(dims)));
  ResultShape result = value(x.dtype, dims, x.extent);
  result.operand.kind = x.kind;
  return result;
}

Result<ResultShape> permute(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Shape& axes = attributes.shape(Attr::axes);
  if (axes.rank() != x.shape.rank())
    return invalid(fmt::format("axes {} do not name each axis of {}", to_string(axes), text_of(x)));
  if (info_of(x.dtype).kind == DTypeKind::quantized) return invalid("blocks of a quantized tensor cannot be permuted");
  ResultShape result;
  result.operand = x;
  std::uint32_t seen = 0;
  for (std::size_t axis = 0; axis < axes.rank(); ++axis) {
    if (axes[axis] >= axes.rank() || (seen >> axes[axis] & 1U) != 0)
      return invalid(fmt::format("axes {} do not name each axis of {}", to_string(axes), text_of(x)));
    seen |= 1U << axes[axis];
    result.operand.shape.set(axis, x.shape[axes[axis]]);
    result.operand.strides[axis] = x.strides[axes[axis]];
  }
  if (x.extent != Extent::fixed && axes[0] != 0) return invalid("axis 0 is a bucket and must stay outermost");
  return result;
}

Result<ResultShape> slice(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const std::uint32_t axis = attributes.u32(Attr::axis);
  const std::uint32_t begin = attributes.u32(Attr::begin);
  const std::uint32_t count = attributes.u32(Attr::count);
  if (axis >= x.shape.rank()) return invalid(fmt::format("axis {} out of range for {}", axis, text_of(x)));
  if (begin > x.shape[axis] || count > x.shape[axis] - begin)
    return invalid(fmt::format("{} indices from {} on axis {} run past {}", count, begin, axis, text_of(x)));
  if (axis == 0 && x.extent != Extent::fixed) return invalid("axis 0 is a bucket and cannot be cut");
  if (axis + 1 == x.shape.rank() && info_of(x.dtype).kind == DTypeKind::quantized)
    return invalid("blocks of a quantized tensor cannot be cut");
  ResultShape result{.operand = x, .offset = begin * x.strides[axis]};
  result.operand.shape.set(axis, count);
  return result;
}

Result<ResultShape> gather(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& ids = *inputs[1];
  SHUNT_TRY(need_rank("x", x, 2));
  SHUNT_TRY(need_rank("ids", ids, 1));
  if (ids.dtype != DType::I32) return invalid(fmt::format("ids must be I32, are {}", text_of(ids)));
  if (info_of(x.dtype).kind == DTypeKind::integer) return invalid(fmt::format("x must not be {}", text_of(x)));
  return value(DType::F32, Shape{ids.shape[0], x.shape[1]}, ids.extent);
}

Result<ResultShape> matmul(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_rank("weight", weight, 2));
  if (info_of(weight.dtype).kind == DTypeKind::integer)
    return invalid(fmt::format("weight must not be {}", text_of(weight)));
  if (x.shape.rank() == 0 || x.shape.columns() != weight.shape[1])
    return invalid(fmt::format("columns of x {} and weight {} differ", text_of(x), text_of(weight)));
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, weight.shape[0]);
  if (present(inputs, 2)) SHUNT_TRY(need("residual", *inputs[2], DType::F32, shape));
  return value(DType::F32, shape, x.extent);
}

Result<ResultShape> norm_matmul(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  if (x.dtype != DType::F32) return invalid(fmt::format("x must be F32, is {}", text_of(x)));
  SHUNT_TRY_ASSIGN(ResultShape result, matmul(inputs.first(2), {}));
  SHUNT_TRY(need("norm", *inputs[2], DType::F32, Shape{weight.shape[1]}));
  if (present(inputs, 3)) SHUNT_TRY(need("up", *inputs[3], weight.dtype, weight.shape));
  return result;
}

Result<ResultShape> rotary(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_rotary(x, attributes));
  SHUNT_TRY(need("positions", *inputs[1], DType::I32, Shape{x.shape[0]}));
  if (present(inputs, 2)) {
    const std::uint32_t dims = attributes.u32(Attr::rotary_dims);
    SHUNT_TRY(need("factors", *inputs[2], DType::F32, Shape{(dims == 0 ? x.shape[2] : dims) / 2}));
  }
  return value(x.dtype, x.shape, x.extent);
}

Result<ResultShape> cache_write(InputOperands inputs, const Attributes& attributes) {
  const Operand& state = *inputs[0];
  const Operand& x = *inputs[1];
  SHUNT_TRY(need_rank("state", state, 4));
  SHUNT_TRY(need_rotary(x, attributes));
  if (state.kind != TensorKind::state || !is_floating(state) || !state.is_contiguous())
    return invalid(fmt::format("state must be a floating state tensor, is {}", text_of(state)));
  if (state.shape[1] == 0 || state.shape[2] != x.shape[1] || state.shape[3] != x.shape[2])
    return invalid(fmt::format("state {} does not hold heads of x {}", text_of(state), text_of(x)));
  SHUNT_TRY(need_page_table(inputs, 2, x.shape[0]));
  return ResultShape{.operand = state};
}

Result<ResultShape> attention(InputOperands inputs, const Attributes& attributes) {
  const Operand& query = *inputs[0];
  const Operand& keys = *inputs[1];
  const Operand& values = *inputs[2];
  SHUNT_TRY(need_floating("query", query));
  SHUNT_TRY(need_rank("query", query, 3));
  SHUNT_TRY(need_rank("keys", keys, 4));
  SHUNT_TRY(need_floating("keys", keys));
  if (values.dtype != keys.dtype || values.shape != keys.shape || keys.kind != TensorKind::state ||
      values.kind != TensorKind::state)
    return invalid(fmt::format("keys {} and values {} must be state tensors alike", text_of(keys), text_of(values)));
  if (keys.shape[1] == 0 || keys.shape[2] == 0 || query.shape[1] % keys.shape[2] != 0 ||
      query.shape[2] != keys.shape[3])
    return invalid(fmt::format("heads of query {} do not divide over keys {}", text_of(query), text_of(keys)));
  SHUNT_TRY(need_page_table(inputs, 3, query.shape[0]));
  if (present(inputs, 6)) SHUNT_TRY(need("sinks", *inputs[6], DType::F32, Shape{query.shape[1]}));
  if (!(attributes.f32(Attr::soft_cap) >= 0))
    return invalid(fmt::format("soft_cap {} must not be negative", attributes.f32(Attr::soft_cap)));
  return value(DType::F32, query.shape, query.extent);
}

Result<ResultShape> matmul_experts(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weight = *inputs[1];
  const Operand& ids = *inputs[2];
  SHUNT_TRY(need_rank("ids", ids, 2));
  SHUNT_TRY(need_rank("x", x, 3));
  SHUNT_TRY(need_rank("weight", weight, 3));
  if (ids.dtype != DType::I32) return invalid(fmt::format("ids must be I32, are {}", text_of(ids)));
  if (x.dtype != DType::F32) return invalid(fmt::format("x must be F32, is {}", text_of(x)));
  if (info_of(weight.dtype).kind == DTypeKind::integer)
    return invalid(fmt::format("weight must not be {}", text_of(weight)));
  const std::uint32_t used = ids.shape[1];
  if (x.shape[0] != ids.shape[0] || (x.shape[1] != 1 && x.shape[1] != used))
    return invalid(fmt::format("x {} must have the tokens of ids {}, and a row for all or for each of its experts",
                               text_of(x), text_of(ids)));
  if (x.shape[2] != weight.shape[2])
    return invalid(fmt::format("columns of x {} and weight {} differ", text_of(x), text_of(weight)));
  if (present(inputs, 3)) {
    SHUNT_TRY(need_rank("slots", *inputs[3], 1));
    if (inputs[3]->dtype != DType::I32) return invalid(fmt::format("slots must be I32, are {}", text_of(*inputs[3])));
  }
  if (present(inputs, 4)) SHUNT_TRY(need("bias", *inputs[4], DType::F32, Shape{weight.shape[0], weight.shape[1]}));
  return value(DType::F32, Shape{ids.shape[0], used, weight.shape[1]}, x.extent);
}

Result<ResultShape> argmax(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  return one_of_each_row(DType::I32, x);
}

Result<ResultShape> top_k(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const std::uint32_t k = attributes.u32(Attr::k);
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  if (k == 0 || k > x.shape.columns())
    return invalid(fmt::format("k {} must be from 1 to the columns of {}", k, text_of(x)));
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, k);
  return value(DType::I32, shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

Result<ResultShape> take(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& ids = *inputs[1];
  SHUNT_TRY(need_floating("x", x));
  if (ids.dtype != DType::I32) return invalid(fmt::format("ids must be I32, are {}", text_of(ids)));
  bool alike = x.shape.rank() == ids.shape.rank() && x.shape.rank() != 0;
  for (std::size_t axis = 0; alike && axis + 1 < x.shape.rank(); ++axis) alike = x.shape[axis] == ids.shape[axis];
  if (!alike) return invalid(fmt::format("ids {} must have the rows of x {}", text_of(ids), text_of(x)));
  return value(x.dtype, ids.shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

Result<ResultShape> reduce(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  return one_of_each_row(x.dtype, x);
}

Result<ResultShape> dot(InputOperands inputs, const Attributes& attributes) {
  SHUNT_TRY(need_floating("b", *inputs[1]));
  if (!is_suffix(inputs[1]->shape, inputs[0]->shape))
    return invalid(fmt::format("b {} does not equal the last axes of a {}", text_of(*inputs[1]), text_of(*inputs[0])));
  return reduce(inputs, attributes);
}

Result<ResultShape> weighted_sum(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& weights = *inputs[1];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_floating("weights", weights));
  const std::uint32_t rank = x.shape.rank();
  bool alike = rank >= 2 && weights.shape.rank() + 1 == rank;
  for (std::size_t axis = 0; alike && axis + 1 < rank; ++axis) alike = x.shape[axis] == weights.shape[axis];
  if (!alike) return invalid(fmt::format("weights {} must be one for each row of x {}", text_of(weights), text_of(x)));
  if (rank == 2 && x.extent != Extent::fixed)
    return invalid(fmt::format("axis 0 of x {} is a bucket and cannot be summed over", text_of(x)));
  Shape shape;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) shape.append(x.shape[axis]);
  shape.append(x.shape.columns());
  return value(x.dtype, shape, x.extent);
}

Result<ResultShape> concat(InputOperands inputs, const Attributes& attributes) {
  const Operand& a = *inputs[0];
  const Operand& b = *inputs[1];
  const std::uint32_t axis = attributes.u32(Attr::axis);
  if (a.dtype != b.dtype || info_of(a.dtype).kind == DTypeKind::quantized)
    return invalid(fmt::format("a {} and b {} must be of one dtype that is not quantized", text_of(a), text_of(b)));
  if (axis >= a.shape.rank()) return invalid(fmt::format("axis {} out of range for a {}", axis, text_of(a)));
  Shape shape = a.shape;
  if (b.shape.rank() == shape.rank()) shape.set(axis, b.shape[axis]);
  if (shape != b.shape)
    return invalid(fmt::format("a {} and b {} differ in more than axis {}", text_of(a), text_of(b), axis));
  if (a.extent != b.extent) return invalid("axis 0 of a and b must be counted by the same");
  if (axis == 0 && a.extent != Extent::fixed) return invalid("axis 0 is a bucket, behind which nothing can stand");
  const std::uint64_t together = std::uint64_t{a.shape[axis]} + b.shape[axis];
  if (together > std::numeric_limits<std::uint32_t>::max())
    return invalid(fmt::format("axis {} of the result would have {} entries", axis, together));
  shape.set(axis, static_cast<std::uint32_t>(together));
  return value(a.dtype, shape, a.extent);
}

Result<ResultShape> copy(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const DType to = attributes.dtype(Attr::to);
  for (const DType dtype : {x.dtype, to})
    if (info_of(dtype).kind == DTypeKind::quantized)
      return invalid(
          fmt::format("converts between dtypes that are not quantized, not {} to {}; quantize and dequantize do",
                      text_of(x), name_of(to)));
  return value(to, x.shape, x.extent);
}

Result<ResultShape> quantize(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const DType to = attributes.dtype(Attr::to);
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_whole_rows("x", x));
  if (info_of(to).kind != DTypeKind::quantized)
    return invalid(fmt::format("`to` must be a quantized dtype, is {}", name_of(to)));
  return value(to, x.shape, x.extent);
}

Result<ResultShape> dequantize(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const DType to = attributes.dtype(Attr::to);
  if (info_of(x.dtype).kind != DTypeKind::quantized)
    return invalid(fmt::format("x must be of a quantized dtype, is {}", text_of(x)));
  SHUNT_TRY(need_whole_rows("x", x));
  if (info_of(to).kind != DTypeKind::floating)
    return invalid(fmt::format("`to` must be a floating dtype, is {}", name_of(to)));
  return value(to, x.shape, x.extent);
}

}  // namespace shape_rule

}  // namespace shunt
