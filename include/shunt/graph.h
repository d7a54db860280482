// A tensor graph: what to compute. Built once through GraphBuilder, then constant.
//
// A Graph owns nodes and tensor descriptions, never data. Every use of an op is checked when it is added;
// the first error sticks to the builder and finish() returns it, so that building code reads straight
// through. Nodes stand in an order in which they can run. A builder belongs to one thread; a Graph may be read
// from any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/expand.h"
#include "shunt/op.h"

namespace shunt {

using TensorId = std::uint32_t;
using NodeId = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xFFFFFFFFU;

// A tensor of the graph that is being built. Invalid after an error, which later calls then pass on.
struct Tensor {
  TensorId id = kNone;
};

struct TensorInfo {
  std::string name;          // unique; made up from the node for values
  Operand operand;           // dtype, layout, kind, extents, strides
  NodeId producer = kNone;   // kNone for weights, inputs and state
  TensorId base = kNone;     // the tensor whose storage it shares: itself, unless a view or a new state
  std::uint64_t offset = 0;  // elements into the storage of `base`
  std::string rows_of;       // a weight that is a part of another, by its name; empty: it is whole
  std::uint32_t first_row = 0;
};

struct Node {
  Op op{};
  Attributes attributes;
  std::vector<TensorId> inputs;  // kNone where an optional input is absent
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
  // The version of a state that a tensor shows: itself, or for a view what it is a view of.
  [[nodiscard]] TensorId version_of(TensorId id) const;

 private:
  friend class GraphBuilder;
  std::vector<TensorInfo> tensors_;
  std::vector<Node> nodes_;
  std::vector<TensorId> outputs_;
};

// The tensors of a graph may take 2^56 bytes together, so that no sum of their sizes, offsets and copies overflows.
class GraphBuilder {
 public:
  // A constant of that name in a WeightSource. Naming the same weight again gives the same tensor.
  Tensor weight(std::string_view name, DType dtype, const Shape& shape);
  // Rows of a constant [rows, columns], [count, columns] from row `first` on: "name[first:first + count]".
  Tensor weight_rows(std::string_view name, DType dtype, std::uint32_t first, std::uint32_t count,
                     std::uint32_t columns);
  // Written by the caller before each submission. `extent` says what counts its valid entries on axis 0.
  Tensor input(std::string_view name, DType dtype, const Shape& shape, Extent extent = Extent::fixed);
  // Lives from submission to submission. An op that changes it returns the new state, and from then on nothing else
  // can be read or changed: using an older version is an error.
  Tensor state(std::string_view name, DType dtype, const Shape& shape);

  // Adds a use of any op; inputs in the order of the row, Tensor{} for an absent optional one. A fused row is
  // added as its expansion: graphs stay primitive.
  Tensor add_node(Op op, std::span<const Tensor> inputs, const Attributes& attributes = {});

  // Adds a use of a kernel of your own (shunt/kernel.h), named after it. Views that are not contiguous are copied for
  // it.
  Tensor custom(std::shared_ptr<const UserKernel> kernel, std::span<const Tensor> inputs,
                std::span<const std::byte> arguments = {});
  Tensor custom(std::shared_ptr<const UserKernel> kernel, std::initializer_list<Tensor> inputs,
                std::span<const std::byte> arguments = {}) {
    return custom(std::move(kernel), std::span(inputs.begin(), inputs.size()), arguments);
  }

  // One function per other row of ops.def: `linear(x, weight)`, `rms_norm(x, {{Attr::epsilon, 1e-6F}})`.
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

  // What a run of the graph gives back, in the order of these calls.
  void output(Tensor tensor);
  // Names the tensor (for messages, plans and traces).
  void name(Tensor tensor, std::string_view name);
  // Text put before the names of nodes added from now on: "blk.3."
  void prefix(std::string_view text) { prefix_ = text; }

  // Shape so far; empty after an error.
  [[nodiscard]] Shape shape_of(Tensor tensor) const;

  // Errors: the first that any call met, or invalid for a graph without outputs.
  [[nodiscard]] Result<Graph> finish() &&;

 private:
  // Takes memory for it unless it shares that of another.
  Tensor add_tensor(TensorInfo info);
  Tensor add_primitive(Op op, std::span<const Tensor> inputs, const Attributes& attributes);
  Tensor add_custom(std::span<const Tensor> inputs, const Attributes& attributes);
  Tensor add_leaf(std::string_view name, const Operand& operand);
  Tensor add_weight(std::string_view name, const Operand& operand);
  Tensor refuse(Error error);
  // Whether an op has changed the state that the tensor shows.
  [[nodiscard]] bool is_outdated(TensorId id) const;
  // The name, with primes where it is taken.
  [[nodiscard]] std::string unused_name(std::string name) const;

  Graph graph_;
  std::map<std::string, TensorId, std::less<>> ids_;  // by name
  std::uint64_t bytes_ = 0;                           // of all tensors with memory of their own
  std::map<TensorId, TensorId> newest_;               // of each changed state, by its base
  std::optional<Error> error_;
  std::string prefix_;
};

}  // namespace shunt
