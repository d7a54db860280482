// A value of an ONNX graph while it is imported: known by now, or computed by the graph that is being built.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnx/budget.h"
#include "onnx/model.h"
#include "shunt/graph.h"

namespace shunt::onnx {

// Elements known while importing. Integers of all widths, and truth values, are `integers`; all floats are `floats`.
struct Constant {
  bool is_integer = false;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  [[nodiscard]] std::size_t size() const { return is_integer ? integers.size() : floats.size(); }
};
// Zeros, to be filled: the only way to a constant's memory. Errors: those of the budget.
[[nodiscard]] Result<Constant> zeros(Budget& budget, bool is_integer, std::uint64_t elements);
// Whether a constant of that type has `integers`.
[[nodiscard]] bool holds_integers(Type type);

// Contiguous, of at most four axes.
struct Value {
  std::string name;
  Type type = Type::f32;
  Shape shape;
  Tensor tensor;                             // where it is computed, or was needed as a tensor
  std::shared_ptr<const Constant> constant;  // null where it is computed

  [[nodiscard]] bool is_known() const { return constant != nullptr; }
  [[nodiscard]] bool is_integer() const { return type == Type::i32 || type == Type::i64 || type == Type::boolean; }
};

// Errors: unsupported for more than four axes or elements of 2^31 bytes; invalid for negative extents.
[[nodiscard]] Result<Shape> shape_from(std::span<const std::int64_t> dims);

// Elements of a tensor in the file. `external` are its bytes where they lie in another file. Errors: unsupported for
// types and what the budget has no room for, invalid where elements are missing.
[[nodiscard]] Result<Constant> constant_from(Budget& budget, const TensorData& data, const Shape& shape,
                                             std::span<const std::byte> external);

// The shape of two operands together, as numpy has it. Errors: invalid where they do not fit.
[[nodiscard]] Result<Shape> broadcast(const Shape& a, const Shape& b);
// Elements of `from` repeated to `to`. REQUIRES: broadcast(from, to) == to. Errors here and below: those of the budget.
[[nodiscard]] Result<Constant> repeated(Budget& budget, const Constant& constant, const Shape& from, const Shape& to);
// Axes exchanged: axis i of the result is axis axes[i].
[[nodiscard]] Result<Constant> transposed(Budget& budget, const Constant& constant, const Shape& shape,
                                          std::span<const std::uint32_t> axes);

}  // namespace shunt::onnx
