// Finds where a graph contains the expansion of a fused op, so that a device may run the fused form.
#pragma once

#include <vector>

#include "ops/op.h"
#include "shunt/graph.h"

namespace shunt {

// A unit is what a device runs at once: a node of the graph, or a fused op that stands for several.
struct Unit {
  Op op{};
  Attributes attributes;
  std::vector<TensorId> inputs;  // kNone if absent
  TensorId output = kNone;
  std::vector<NodeId> nodes;  // the nodes it stands for, in order; the last one makes `output`

  [[nodiscard]] bool is_fused() const { return nodes.size() > 1; }
  friend bool operator==(const Unit&, const Unit&) = default;
};

[[nodiscard]] Unit unit_of(const Graph& graph, NodeId node);

// Returns every match of a fused op's expansion, in order of the root node. Attributes agree, and the fused op's shape
// rule gives the same result. Other nodes may read inner results too.
[[nodiscard]] std::vector<Unit> find_fusions(const Graph& graph, Op fused);

// The concrete call of a unit, with operands that are in the graph. Holds pointers into both.
struct UnitCall {
  UnitCall(const Graph& graph, const Unit& unit);
  std::vector<const Operand*> inputs;
  const Unit* unit;
  const Operand* output;
  Numerics numerics;
  [[nodiscard]] OpCall call() const {
    return {.op = unit->op, .attributes = &unit->attributes, .inputs = inputs, .output = output, .numerics = numerics};
  }
};

}  // namespace shunt
