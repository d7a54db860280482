// A tensor graph: what to compute. GraphBuilder builds it once; from then on it is constant.
//
// A Graph owns nodes and tensor descriptions, never data. Every use of an op is checked when it is added. The builder
// keeps the first error until finish() returns it, so building code needs no checks. Nodes are in an order in which
// they can run. A builder serves one thread at a time; a Graph may be read from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/expand.h"
#include "shunt/numerics.h"
#include "shunt/op.h"

namespace shunt {

using TensorId = std::uint32_t;
using NodeId = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xFFFFFFFFU;

// A tensor of the graph being built. After an error it is invalid, and so is every tensor made from it.
struct Tensor {
  TensorId id = kNone;
};

struct TensorInfo {
  std::string name;          // unique; derived from the node for values
  Operand operand;           // dtype, layout, kind, extents, strides
  NodeId producer = kNone;   // kNone for weights, inputs and state
  TensorId base = kNone;     // the tensor whose storage it shares: itself, unless a view or a new state
  std::uint64_t offset = 0;  // elements into the storage of `base`
  std::string rows_of;       // for a part of a weight, the name of the whole; else empty
  std::uint32_t first_row = 0;
};

struct Node {
  Op op{};
  Attributes attributes;
  std::vector<TensorId> inputs;  // kNone for an absent optional input
  TensorId output = kNone;
  std::string name;
};

class Graph {
 public:
  [[nodiscard]] std::span<const TensorInfo> tensors() const { return tensors_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const TensorId> outputs() const { return outputs_; }
  [[nodiscard]] const TensorInfo& tensor(TensorId id) const { return tensors_[id]; }
  [[nodiscard]] std::optional<TensorId> find(std::string_view name) const;
  // The version of a state that a tensor shows: the tensor itself, or the one it is a view of.
  [[nodiscard]] TensorId version_of(TensorId id) const;
  // How exactly its products must be computed; exact unless set.
  [[nodiscard]] Numerics numerics() const { return numerics_; }
  void set_numerics(Numerics numerics) { numerics_ = numerics; }

 private:
  friend class GraphBuilder;
  std::vector<TensorInfo> tensors_;
  std::vector<Node> nodes_;
  std::vector<TensorId> outputs_;
  Numerics numerics_ = Numerics::exact;
};

// The tensors of a graph may take at most 2^56 bytes together, so no sum of sizes, offsets and copies overflows.
class GraphBuilder {
 public:
  // Adds a constant that a WeightSource has by this name. The same name again returns the same tensor.
  Tensor weight(std::string_view name, DType dtype, const Shape& shape);
  // Adds rows `first` to `first + count - 1` of a constant [rows, columns] as a tensor [count, columns], named
  // "name[first:first + count]".
  Tensor weight_rows(std::string_view name, DType dtype, std::uint32_t first, std::uint32_t count,
                     std::uint32_t columns);
  // Adds an input, which the caller writes before each submission. `extent` says what counts its valid entries on axis
  // 0.
  Tensor input(std::string_view name, DType dtype, const Shape& shape, Extent extent = Extent::fixed);
  // Adds state, which lives from one submission to the next. An op that changes it returns the new version. Reading or
  // changing an older version is an error.
  Tensor state(std::string_view name, DType dtype, const Shape& shape);

  // Adds a use of any op. Inputs are in the order of its row, with Tensor{} for an absent optional one. A fused op is
  // added as its expansion, so graphs contain only primitive ops.
  Tensor add_node(Op op, std::span<const Tensor> inputs, const Attributes& attributes = {});

  // Adds a use of a custom op (shunt/kernel.h), named after its kernel. Views that are not contiguous are copied first.
  Tensor custom(std::shared_ptr<const UserKernel> kernel, std::span<const Tensor> inputs,
                std::span<const std::byte> arguments = {});
  Tensor custom(std::shared_ptr<const UserKernel> kernel, std::initializer_list<Tensor> inputs,
                std::span<const std::byte> arguments = {}) {
    return custom(std::move(kernel), std::span(inputs.begin(), inputs.size()), arguments);
  }

  // One function for each other row of ops.def: `linear(x, weight)`, `rms_norm(x, {{Attr::epsilon, 1e-6F}})`.
#define SHUNT_TENSOR_PARAMETER(name) Tensor name
#define SHUNT_TENSOR_ARGUMENT(name) name
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) SHUNT_BUILDER_FUNCTION(name, inputs)
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) SHUNT_BUILDER_FUNCTION(name, inputs)
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) SHUNT_BUILDER_FUNCTION(name, inputs)
#define SHUNT_CUSTOM(name, inputs, required, attributes, rule, family)
#define SHUNT_BUILDER_FUNCTION(name, inputs)                                     \
  Tensor name(SHUNT_PARAMETERS inputs, const Attributes& node_attributes = {}) { \
    const Tensor operands[] = {SHUNT_ARGUMENTS inputs};                          \
    return add_node(Op::name, operands, node_attributes);                        \
  }
#define SHUNT_PARAMETERS(...) SHUNT_EACH_COMMA(SHUNT_TENSOR_PARAMETER, __VA_ARGS__)
#define SHUNT_ARGUMENTS(...) SHUNT_EACH_COMMA(SHUNT_TENSOR_ARGUMENT, __VA_ARGS__)
#include "ops/ops.def"
#undef SHUNT_BUILDER_FUNCTION
#undef SHUNT_PARAMETERS
#undef SHUNT_ARGUMENTS
#undef SHUNT_TENSOR_PARAMETER
#undef SHUNT_TENSOR_ARGUMENT

  // Makes the tensor an output. Outputs are numbered in the order of these calls.
  void output(Tensor tensor);
  // Names the tensor for messages, plans and traces.
  void name(Tensor tensor, std::string_view name);
  // Sets a prefix for the names of all nodes added from now on: "blk.3."
  void prefix(std::string_view text) { prefix_ = text; }

  // The tensor's shape; empty after an error.
  [[nodiscard]] Shape shape_of(Tensor tensor) const;

  // Returns the graph. Errors: the first error of any call; invalid for a graph without outputs.
  [[nodiscard]] Result<Graph> finish() &&;

 private:
  // Counts its bytes unless it shares another tensor's storage.
  Tensor add_tensor(TensorInfo info);
  Tensor add_primitive(Op op, std::span<const Tensor> inputs, const Attributes& attributes);
  Tensor add_custom(std::span<const Tensor> inputs, const Attributes& attributes);
  Tensor add_leaf(std::string_view name, const Operand& operand);
  Tensor add_weight(std::string_view name, const Operand& operand);
  Tensor refuse(Error error);
  // True if an op has changed the state that the tensor shows.
  [[nodiscard]] bool is_outdated(TensorId id) const;
  // Returns the name, with primes appended if it is taken.
  [[nodiscard]] std::string unused_name(std::string name) const;

  Graph graph_;
  std::map<std::string, TensorId, std::less<>> ids_;  // by name
  std::uint64_t bytes_ = 0;                           // of all tensors with their own storage
  std::map<TensorId, TensorId> newest_;               // version of each changed state, by its base
  std::optional<Error> error_;
  std::string prefix_;
};

}  // namespace shunt
