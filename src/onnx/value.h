// A value of an ONNX graph during import: known already, or computed by the graph under construction.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onnx/budget.h"
#include "onnx/model.h"
#include "shunt/graph.h"

namespace shunt::onnx {

// Elements known during import. Integers of all widths and booleans are in `integers`, all floats in `floats`.
struct Constant {
  bool is_integer = false;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  [[nodiscard]] std::size_t size() const { return is_integer ? integers.size() : floats.size(); }
};
// Makes zeros to fill in, the only way to allocate a constant. Errors: those of the budget.
[[nodiscard]] Result<Constant> zeros(Budget& budget, bool is_integer, std::uint64_t elements);
// True if a constant of that type uses `integers`.
[[nodiscard]] bool holds_integers(Type type);

// A contiguous value of at most four axes.
struct Value {
  std::string name;
  Type type = Type::f32;
  Shape shape;
  Tensor tensor;                             // if computed, or needed as a tensor
  std::shared_ptr<const Constant> constant;  // null if computed

  [[nodiscard]] bool is_known() const { return constant != nullptr; }
  [[nodiscard]] bool is_integer() const { return type == Type::i32 || type == Type::i64 || type == Type::boolean; }
};

// Errors: unsupported for more than four axes or 2^29 elements; invalid for negative extents.
[[nodiscard]] Result<Shape> shape_from(std::span<const std::int64_t> dims);

// Reads the elements of a tensor in the file. `external` is its bytes if they are in another file. Errors: unsupported
// for unknown types and for what exceeds the budget; invalid if elements are missing.
[[nodiscard]] Result<Constant> constant_from(Budget& budget, const TensorData& data, const Shape& shape,
                                             std::span<const std::byte> external);

// Returns the broadcast shape of two operands, as in numpy. Errors: invalid if they do not fit.
[[nodiscard]] Result<Shape> broadcast(const Shape& a, const Shape& b);
// Repeats the elements of `from` to fill `to`. REQUIRES: broadcast(from, to) == to. Errors here and below: those of the
// budget.
[[nodiscard]] Result<Constant> repeated(Budget& budget, const Constant& constant, const Shape& from, const Shape& to);
// Permutes axes: axis i of the result is axis axes[i].
[[nodiscard]] Result<Constant> transposed(Budget& budget, const Constant& constant, const Shape& shape,
                                          std::span<const std::uint32_t> axes);

}  // namespace shunt::onnx
