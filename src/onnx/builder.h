// Builds a graph from the nodes of an ONNX model. For one use, by the translators of nodes (onnx/ops.def).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/import.h"
#include "onnx/value.h"

namespace shunt::onnx {

class Builder;

// A node during translation: its operands so far, and its attributes.
class Call {
 public:
  Call(Builder& builder, const Node& node, std::vector<const Value*> inputs)
      : builder_(builder), node_(node), inputs_(std::move(inputs)) {}

  [[nodiscard]] Builder& builder() const { return builder_; }
  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] bool has(std::size_t index) const { return index < inputs_.size() && inputs_[index] != nullptr; }
  // Errors: invalid if the input is absent.
  [[nodiscard]] Result<const Value*> input(std::size_t index) const;
  // Errors: unsupported if the value is not known during import.
  [[nodiscard]] Result<std::span<const std::int64_t>> known_integers(std::size_t index) const;
  [[nodiscard]] Result<std::span<const float>> known_floats(std::size_t index) const;

  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] float real(std::string_view name, float fallback) const;
  [[nodiscard]] std::string_view text(std::string_view name, std::string_view fallback) const;
  [[nodiscard]] std::span<const std::int64_t> integers(std::string_view name) const;
  [[nodiscard]] const Attribute* attribute(std::string_view name) const;
  // Returns the axis counted from the front. Errors: invalid for an axis outside the rank.
  [[nodiscard]] Result<std::uint32_t> axis_in(std::int64_t axis, std::uint32_t rank) const;

  // Returns the product of extents begin .. end - 1. Errors: unsupported if it exceeds 32 bits.
  [[nodiscard]] Result<std::uint32_t> extents(const Shape& shape, std::size_t begin, std::size_t end) const;

  // As the functions of the same names in value.h, using the model's budget.
  [[nodiscard]] Result<Constant> zeros(bool is_integer, std::uint64_t elements) const;
  [[nodiscard]] Result<Constant> repeated(const Constant& constant, const Shape& from, const Shape& to) const;
  [[nodiscard]] Result<Constant> transposed(const Constant& constant, const Shape& shape,
                                            std::span<const std::uint32_t> axes) const;

  [[nodiscard]] std::unexpected<Error> unsupported(std::string why) const;
  [[nodiscard]] std::unexpected<Error> invalid(std::string why) const;
  // Turns the error into one of this node.
  [[nodiscard]] std::unexpected<Error> here(Error error) const;

 private:
  Builder& builder_;
  const Node& node_;
  std::vector<const Value*> inputs_;
};

// The outputs of a node, in order; those that are not needed may be missing.
using Outputs = Result<std::vector<Value>>;

class Builder {
 public:
  explicit Builder(const Model& model) { budget_.add_file(model.bytes); }

  [[nodiscard]] GraphBuilder& graph() { return graph_; }
  [[nodiscard]] Budget& budget() { return budget_; }
  // Returns the value as a tensor of the graph; a constant becomes a weight of F32 or I32. Errors: unsupported for
  // integers that do not fit and, here and below, for what exceeds the budget.
  [[nodiscard]] Result<Tensor> tensor(const Value& value);
  // Adds a weight with elements that the importer computed.
  [[nodiscard]] Result<Tensor> weight(std::string name, const Constant& constant, const Shape& shape);
  // Wraps a tensor that the graph computes.
  [[nodiscard]] static Value computed(Tensor tensor, Type type, const Shape& shape);
  [[nodiscard]] static Value known(Constant constant, Type type, const Shape& shape);

  // Views and copies; all return contiguous tensors.
  [[nodiscard]] Tensor reshaped(Tensor x, const Shape& shape);
  [[nodiscard]] Tensor permuted(Tensor x, std::span<const std::uint32_t> axes);
  [[nodiscard]] Tensor sliced(Tensor x, std::uint32_t axis, std::uint32_t begin, std::uint32_t count);
  // Joins parts along an axis. REQUIRES: !parts.empty().
  [[nodiscard]] Tensor joined(std::vector<Tensor> parts, std::uint32_t axis);
  // Move axis `axis` of x [..] to the end, and back.
  [[nodiscard]] Tensor with_axis_last(Tensor x, std::uint32_t rank, std::uint32_t axis);
  [[nodiscard]] Tensor with_last_axis_at(Tensor x, std::uint32_t rank, std::uint32_t axis);

  [[nodiscard]] Status add_inputs(const Model& model, const std::map<std::string, Shape>& shapes);
  [[nodiscard]] Status add_initializers(const Model& model, const std::string& folder);
  [[nodiscard]] Status add_node(const Node& node);
  [[nodiscard]] Result<Imported> finish(const Model& model) &&;

 private:
  struct Weights;

  GraphBuilder graph_;
  Budget budget_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<Port> inputs_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  MemoryWeights weights_;
  std::uint32_t made_ = 0;  // number of weights so far
};

}  // namespace shunt::onnx
