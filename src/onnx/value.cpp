#include "onnx/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "ops/quantize/blocks.h"

namespace shunt::onnx {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 29U;

std::size_t bytes_of_one(Type type) {
  switch (type) {
    case Type::u8:
    case Type::i8:
    case Type::boolean:
      return 1;
    case Type::f16:
    case Type::bf16:
      return 2;
    case Type::f32:
    case Type::i32:
    case Type::u32:
      return 4;
    case Type::f64:
    case Type::i64:
      return 8;
    case Type::undefined:
      break;
  }
  return 0;
}

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Reads one element in the file's encoding as a number of that kind.
float real_of(Type type, std::span<const std::byte> raw, std::size_t index) {
  switch (type) {
    case Type::f16:
      return f16_to_f32(element<std::uint16_t>(raw, index));
    case Type::bf16:
      return bf16_to_f32(element<std::uint16_t>(raw, index));
    case Type::f64:
      return static_cast<float>(element<double>(raw, index));
    default:
      return element<float>(raw, index);
  }
}

std::int64_t integer_of(Type type, std::span<const std::byte> raw, std::size_t index) {
  switch (type) {
    case Type::u8:
    case Type::boolean:
      return element<std::uint8_t>(raw, index);
    case Type::i8:
      return element<std::int8_t>(raw, index);
    case Type::i32:
      return element<std::int32_t>(raw, index);
    case Type::u32:
      return element<std::uint32_t>(raw, index);
    default:
      return element<std::int64_t>(raw, index);
  }
}

// Calls visit(index of an element of the result, index of its source) for a result of shape `to`. Axis i advances
// `strides[i]` elements in the source.
template <class Visit>
void each_element(const Shape& to, const Strides& strides, const Visit& visit) {
  std::array<std::uint32_t, kMaxRank> at{};
  const std::uint64_t count = to.elements();
  std::uint64_t source = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    visit(index, source);
    for (std::size_t axis = to.rank(); axis-- > 0;) {
      source += strides[axis];
      if (++at[axis] < to[axis]) break;
      source -= strides[axis] * to[axis];
      at[axis] = 0;
    }
  }
}

Result<Constant> picked(Budget& budget, const Constant& constant, const Shape& to, const Strides& strides) {
  SHUNT_TRY_ASSIGN(Constant result, zeros(budget, constant.is_integer, to.elements()));
  if (constant.is_integer) {
    each_element(to, strides,
                 [&](std::uint64_t i, std::uint64_t from) { result.integers[i] = constant.integers[from]; });
  } else {
    each_element(to, strides, [&](std::uint64_t i, std::uint64_t from) { result.floats[i] = constant.floats[from]; });
  }
  return result;
}

}  // namespace

Result<Constant> zeros(Budget& budget, bool is_integer, std::uint64_t elements) {
  Constant constant{.is_integer = is_integer, .floats = {}, .integers = {}};
  SHUNT_TRY(budget.take(elements, is_integer ? sizeof(std::int64_t) : sizeof(float)));
  if (is_integer)
    constant.integers.resize(elements);
  else
    constant.floats.resize(elements);
  return constant;
}

bool holds_integers(Type type) {
  switch (type) {
    case Type::i32:
    case Type::i64:
    case Type::i8:
    case Type::u8:
    case Type::u32:
    case Type::boolean:
      return true;
    default:
      return false;
  }
}

Result<Shape> shape_from(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank)
    return fail(Code::unsupported,
                fmt::format("a tensor has {} axes; at most {} are supported", dims.size(), kMaxRank));
  Shape shape;
  std::uint64_t elements = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0 || extent > std::numeric_limits<std::int32_t>::max())
      return fail(Code::invalid, fmt::format("an axis has the invalid extent {}", extent));
    shape.append(static_cast<std::uint32_t>(extent));
    // An extent of 0 counts as 1, which bounds every product of some of the extents too.
    const auto more = checked_product(elements, std::max<std::int64_t>(1, extent));
    elements = more.value_or(kMostElements + 1);
    if (elements > kMostElements)
      return fail(Code::unsupported,
                  fmt::format("a tensor {} has more than {} elements", to_string(shape), kMostElements));
  }
  return shape;
}

Result<Constant> constant_from(Budget& budget, const TensorData& data, const Shape& shape,
                               std::span<const std::byte> external) {
  if (bytes_of_one(data.type) == 0)
    return fail(Code::unsupported,
                fmt::format("tensor \"{}\" has the unsupported type {}", data.name, name_of(data.type)));
  const std::uint64_t count = shape.elements();
  const std::span<const std::byte> raw = data.is_external ? external : data.raw;
  const bool has_raw = data.is_external || !data.raw.empty();
  const auto missing = [&](std::uint64_t there) {
    return fail(Code::invalid, fmt::format("tensor \"{}\" {} has {} elements", data.name, to_string(shape), there));
  };
  const bool is_integer = holds_integers(data.type);
  if (!has_raw && data.type == Type::f64)
    return fail(Code::unsupported,
                fmt::format("tensor \"{}\" holds doubles without raw data, which is not supported", data.name));
  const std::size_t there = has_raw                  ? raw.size() / bytes_of_one(data.type)
                            : data.type == Type::f32 ? data.floats.size()
                                                     : data.integers.size();
  if (there != count || (has_raw && raw.size() % bytes_of_one(data.type) != 0)) return missing(there);
  SHUNT_TRY_ASSIGN(Constant constant, zeros(budget, is_integer, count));
  for (std::size_t i = 0; i < count; ++i) {
    if (is_integer)
      constant.integers[i] = has_raw ? integer_of(data.type, raw, i) : data.integers[i];
    else if (has_raw)
      constant.floats[i] = real_of(data.type, raw, i);
    else if (data.type == Type::f32)
      constant.floats[i] = data.floats[i];
    else  // f16 and bf16 are stored as integers
      constant.floats[i] = data.type == Type::f16 ? f16_to_f32(static_cast<std::uint16_t>(data.integers[i]))
                                                  : bf16_to_f32(static_cast<std::uint16_t>(data.integers[i]));
  }
  return constant;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const std::uint32_t rank = std::max(a.rank(), b.rank());
  Shape result;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    const auto extent = [&](const Shape& shape) {
      const std::uint32_t missing = rank - shape.rank();
      return axis < missing ? 1U : shape[axis - missing];
    };
    const std::uint32_t of_a = extent(a);
    const std::uint32_t of_b = extent(b);
    if (of_a != of_b && of_a != 1 && of_b != 1)
      return fail(Code::invalid, fmt::format("{} and {} do not fit together", to_string(a), to_string(b)));
    result.append(of_a == 1 ? of_b : of_a);
  }
  return result;
}

Result<Constant> repeated(Budget& budget, const Constant& constant, const Shape& from, const Shape& to) {
  const Strides contiguous = contiguous_strides(from);
  Strides strides{};
  for (std::uint32_t axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != 1) strides[to.rank() - from.rank() + axis] = contiguous[axis];
  return picked(budget, constant, to, strides);
}

Result<Constant> transposed(Budget& budget, const Constant& constant, const Shape& shape,
                            std::span<const std::uint32_t> axes) {
  const Strides contiguous = contiguous_strides(shape);
  Strides strides{};
  Shape to;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    strides[axis] = contiguous[axes[axis]];
    to.append(shape[axes[axis]]);
  }
  return picked(budget, constant, to, strides);
}

}  // namespace shunt::onnx
