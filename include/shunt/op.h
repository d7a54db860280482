// Ops, their attributes and their operands. The enums expand from the tables in ops/; all types are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ops/parameters.h"
#include "shunt/tensor.h"

namespace shunt {

enum class Op : std::uint8_t {
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) name,
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) name,
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) name,
#include "ops/ops.def"
};

class UserKernel;  // shunt/kernel.h

enum class Attr : std::uint8_t {
#define SHUNT_ATTRIBUTE(name, type, default_value, meaning) name,
#include "ops/attributes.def"
};

using AttributeValue =
    std::variant<float, std::uint32_t, DType, Shape, std::shared_ptr<const UserKernel>, std::vector<std::byte>>;

struct AttributeInfo {
  std::string_view name;
  std::string_view type;  // "f32", "u32", "dtype", "shape", "user_kernel" or "bytes"
  AttributeValue default_value;
  std::string_view meaning;
};
[[nodiscard]] const AttributeInfo& info_of(Attr attr);

// The attributes of one node. An attribute that was not set has its row's default.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<Attr, AttributeValue>> values);

  void set(Attr attr, AttributeValue value);
  [[nodiscard]] const AttributeValue& get(Attr attr) const;
  // REQUIRES (for the six below): the row of `attr` has that type.
  [[nodiscard]] float f32(Attr attr) const { return std::get<float>(get(attr)); }
  [[nodiscard]] std::uint32_t u32(Attr attr) const { return std::get<std::uint32_t>(get(attr)); }
  [[nodiscard]] DType dtype(Attr attr) const { return std::get<DType>(get(attr)); }
  [[nodiscard]] const Shape& shape(Attr attr) const { return std::get<Shape>(get(attr)); }
  [[nodiscard]] const std::shared_ptr<const UserKernel>& user_kernel(Attr attr) const {
    return std::get<std::shared_ptr<const UserKernel>>(get(attr));
  }
  [[nodiscard]] std::span<const std::byte> bytes(Attr attr) const {
    return std::get<std::vector<std::byte>>(get(attr));
  }
  // The attributes that were set, in the order of the table.
  [[nodiscard]] std::span<const std::pair<Attr, AttributeValue>> set_values() const { return values_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<std::pair<Attr, AttributeValue>> values_;
};

// One operand of a concrete op: everything about a tensor except its data.
struct Operand {
  DType dtype = DType::F32;
  TensorKind kind = TensorKind::value;
  Extent extent = Extent::fixed;  // what counts the valid entries of axis 0
  Shape shape;
  Strides strides{};  // in elements; the innermost is 1 unless the operand is a permuted view

  [[nodiscard]] static Operand contiguous(DType dtype, const Shape& shape, TensorKind kind = TensorKind::value,
                                          Extent extent = Extent::fixed);
  // Returns the bytes from the first byte used to the end of the last. REQUIRES: a validated shape.
  [[nodiscard]] std::uint64_t span_bytes() const;
  [[nodiscard]] bool is_contiguous() const { return strides == contiguous_strides(shape); }
  // True if the elements of each row are contiguous. The rows may be anywhere.
  [[nodiscard]] bool has_contiguous_rows() const {
    return shape.rank() == 0 || shape.columns() <= 1 || strides[shape.rank() - 1] == 1;
  }
};

[[nodiscard]] std::string_view name_of(Op op);
// Errors: invalid, with a list of the ops.
[[nodiscard]] Result<Op> op_from_name(std::string_view name);

}  // namespace shunt
