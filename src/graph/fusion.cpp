#include "graph/fusion.h"

#include <algorithm>
#include <optional>

#include "ops/expansion.h"
#include "ops/op.h"

namespace shunt {
namespace {

class Matcher {
 public:
  Matcher(const Graph& graph, Op fused)
      : graph_(graph), row_(info_of(fused)), expansion_(expansion_of(fused)), fused_(fused) {}

  std::optional<Unit> match_at(NodeId root) {
    unit_ = Unit{.op = fused_,
                 .attributes = {},
                 .inputs = std::vector<TensorId>(row_.inputs.size(), kNone),
                 .output = graph_.nodes()[root].output,
                 .nodes = {}};
    if (!match(expansion_, unit_.output)) return std::nullopt;
    std::ranges::sort(unit_.nodes);
    const auto twice = std::ranges::unique(unit_.nodes);
    unit_.nodes.erase(twice.begin(), twice.end());
    return same_result() && reads_state_unchanged() ? std::optional(unit_) : std::nullopt;
  }

 private:
  bool match(const Expansion& part, TensorId tensor) {
    if (tensor == kNone) return false;
    if (part.is_input()) {
      TensorId& bound = unit_.inputs[part.input];
      if (bound != kNone && bound != tensor) return false;
      bound = tensor;
      return true;
    }
    const NodeId id = graph_.tensor(tensor).producer;
    if (id == kNone) return false;
    const Node& node = graph_.nodes()[id];
    if (node.op != part.op || !take_attributes(node) || !match_inputs(part, node)) return false;
    unit_.nodes.push_back(id);
    return true;
  }

  bool match_inputs(const Expansion& part, const Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i >= part.arguments.size()) {
        if (node.inputs[i] != kNone) return false;  // an optional input that the fused op lacks
      } else if (!match(part.arguments[i], node.inputs[i])) {
        return false;
      }
    }
    return node.inputs.size() >= part.arguments.size();
  }

  bool take_attributes(const Node& node) {
    for (const auto& [attr, value] : node.attributes.set_values()) {
      if (std::ranges::find(row_.attributes, attr) == row_.attributes.end()) return false;
      unit_.attributes.set(attr, value);
    }
    return true;
  }

  [[nodiscard]] bool same_result() const {
    std::vector<const Operand*> operands;
    for (const TensorId input : unit_.inputs)
      operands.push_back(input == kNone ? nullptr : &graph_.tensor(input).operand);
    const auto result = infer(unit_.op, operands, unit_.attributes);
    const Operand& output = graph_.tensor(unit_.output).operand;
    return result && result->operand.shape == output.shape && result->operand.dtype == output.dtype &&
           result->operand.kind == output.kind && result->operand.extent == output.extent;
  }

  // The unit runs at its last node, so the state that its first nodes read must still be there.
  [[nodiscard]] bool reads_state_unchanged() const {
    return std::ranges::none_of(unit_.inputs, [&](TensorId input) {
      if (input == kNone || graph_.tensor(input).operand.kind != TensorKind::state) return false;
      const TensorId base = graph_.tensor(input).base;
      for (NodeId node = unit_.nodes.front(); node < unit_.nodes.back(); ++node) {
        const TensorId output = graph_.nodes()[node].output;
        if (graph_.tensor(output).base == base && graph_.version_of(output) == output) return true;
      }
      return false;
    });
  }

  const Graph& graph_;
  const OpInfo& row_;
  const Expansion& expansion_;
  Op fused_;
  Unit unit_;
};

}  // namespace

Unit unit_of(const Graph& graph, NodeId node) {
  const Node& source = graph.nodes()[node];
  return {.op = source.op,
          .attributes = source.attributes,
          .inputs = source.inputs,
          .output = source.output,
          .nodes = {node}};
}

std::vector<Unit> find_fusions(const Graph& graph, Op fused) {
  std::vector<Unit> found;
  Matcher matcher(graph, fused);
  for (NodeId node = 0; node < graph.nodes().size(); ++node)
    if (auto unit = matcher.match_at(node)) found.push_back(std::move(*unit));
  return found;
}

UnitCall::UnitCall(const Graph& graph, const Unit& source)
    : unit(&source), output(&graph.tensor(source.output).operand), numerics(graph.numerics()) {
  for (const TensorId input : source.inputs) inputs.push_back(input == kNone ? nullptr : &graph.tensor(input).operand);
}

}  // namespace shunt
