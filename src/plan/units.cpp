#include "plan/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ops/op.h"

namespace shunt {
namespace {

// A fused row that may be chosen, and which of its nodes nobody else needs.
struct Fusion {
  Unit unit;
  std::vector<bool> owns;  // as unit.nodes
};

class Chooser {
 public:
  explicit Chooser(const PlanRequest& request)
      : request_(request), graph_(*request.graph), readers_(graph_.nodes().size()) {
    for (NodeId node = 0; node < graph_.nodes().size(); ++node)
      for (const TensorId input : graph_.nodes()[node].inputs) add_reader(input, node);
    for (const TensorId output : graph_.outputs()) add_reader(output, kNone);
  }

  [[nodiscard]] std::vector<Unit> choose() const {
    std::vector<Fusion> fusions = request_.fuse ? find_paying() : std::vector<Fusion>();
    std::vector<const Fusion*> chosen = choose_among(fusions);
    while (drop_vain(fusions, chosen)) chosen = choose_among(fusions);
    std::vector<bool> covered(graph_.nodes().size(), false);
    std::map<NodeId, Unit> units;  // by the node that makes the output
    for (const Fusion* fusion : chosen) {
      for (const NodeId node : fusion->unit.nodes) covered[node] = true;
      units.emplace(fusion->unit.nodes.back(), fusion->unit);
    }
    for (NodeId node = 0; node < graph_.nodes().size(); ++node)
      if (!covered[node] && info_of(graph_.nodes()[node].op).op_class != OpClass::layout)
        units.emplace(node, unit_of(graph_, node));
    std::vector<Unit> in_order;
    for (auto& [node, unit] : units) in_order.push_back(std::move(unit));
    return in_order;
  }

 private:
  void add_reader(TensorId tensor, NodeId reader) {
    const NodeId producer = tensor == kNone ? kNone : graph_.tensor(tensor).producer;
    if (producer != kNone) readers_[producer].push_back(reader);
  }

  // A unit can be fused only where the caller put all of its nodes on one device.
  [[nodiscard]] bool split_by_hand(const Unit& unit) const {
    return std::ranges::any_of(unit.nodes, [&](NodeId node) {
      return !request_.device_of_node.empty() && request_.device_of_node[node] != by_hand(request_, unit);
    });
  }

  // The cheapest predicted time of a unit on any device that can run it; nothing where none can.
  [[nodiscard]] std::optional<double> best_us(const Unit& unit) const {
    const UnitCall call(graph_, unit);
    std::optional<double> best;
    for (std::uint32_t index = 0; index < request_.devices.size(); ++index) {
      if (by_hand(request_, unit) != kNone && by_hand(request_, unit) != index) continue;
      const Price& price = request_.prices->of(call.call(), index);
      if (!price.support || too_large_for(request_, unit, index) != kNone) continue;
      best = std::min(best.value_or(price.compute.us), price.compute.us);
    }
    return best;
  }

  // How much of each node of `unit` it stands for: all of it, unless others read a result inside too. In their order.
  [[nodiscard]] std::vector<double> shares_of(const Unit& unit) const {
    std::vector<double> shares(unit.nodes.size(), 1);
    for (std::size_t i = unit.nodes.size() - 1; i-- > 0;) {
      const std::vector<NodeId>& readers = readers_[unit.nodes[i]];
      double inside = 0;
      for (std::size_t reader = i + 1; reader < unit.nodes.size(); ++reader)
        if (std::ranges::find(readers, unit.nodes[reader]) != readers.end()) inside += shares[reader];
      shares[i] = inside / static_cast<double>(readers.size());
    }
    return shares;
  }

  [[nodiscard]] bool pays(const Unit& fused, std::span<const double> shares) const {
    const auto together = split_by_hand(fused) ? std::nullopt : best_us(fused);
    if (!together) return false;
    double apart = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto us = best_us(unit_of(graph_, fused.nodes[i]));
      if (!us) return true;
      apart += *us * shares[i];
    }
    return *together <= apart;
  }

  // Those that pay, larger ones first.
  [[nodiscard]] std::vector<Fusion> find_paying() const {
    std::vector<Fusion> found;
    for (std::size_t op = 0; op < ops().size(); ++op) {
      if (!ops()[op].is_fused()) continue;
      for (Unit& unit : find_fusions(graph_, static_cast<Op>(op))) {
        const std::vector<double> shares = shares_of(unit);
        if (!pays(unit, shares)) continue;
        Fusion& fusion = found.emplace_back(std::move(unit));
        for (const double share : shares) fusion.owns.push_back(share >= 1);
      }
    }
    std::ranges::stable_sort(found, std::ranges::greater{}, [](const Fusion& each) { return each.unit.nodes.size(); });
    return found;
  }

  // Which of them run together: no two own a node, and what one owns no other repeats.
  [[nodiscard]] std::vector<const Fusion*> choose_among(std::span<const Fusion> fusions) const {
    enum class Mark : std::uint8_t { none, repeated, owned };
    std::vector<Mark> marks(graph_.nodes().size(), Mark::none);
    std::vector<const Fusion*> chosen;
    for (const Fusion& fusion : fusions) {
      const auto mark = [&](std::size_t i) -> Mark& { return marks[fusion.unit.nodes[i]]; };
      bool is_free = true;
      for (std::size_t i = 0; i < fusion.owns.size(); ++i)
        is_free = is_free && (fusion.owns[i] ? mark(i) == Mark::none : mark(i) != Mark::owned);
      if (!is_free) continue;
      for (std::size_t i = 0; i < fusion.owns.size(); ++i) mark(i) = fusion.owns[i] ? Mark::owned : Mark::repeated;
      chosen.push_back(&fusion);
    }
    return chosen;
  }

  // Drops those that repeat a result which somebody needs from memory all the same. False: there are none.
  [[nodiscard]] bool drop_vain(std::vector<Fusion>& fusions, std::span<const Fusion* const> chosen) const {
    std::vector<std::vector<const Fusion*>> with_node(graph_.nodes().size());
    for (const Fusion* fusion : chosen)
      for (const NodeId node : fusion->unit.nodes) with_node[node].push_back(fusion);
    const auto is_vain = [&](const Fusion& fusion, std::size_t i) {
      const NodeId node = fusion.unit.nodes[i];
      return !fusion.owns[i] && !std::ranges::all_of(readers_[node], [&](NodeId reader) {
        return reader != kNone && std::ranges::any_of(with_node[reader], [&](const Fusion* other) {
                 return std::ranges::find(with_node[node], other) != with_node[node].end();
               });
      });
    };
    std::vector<bool> vain(fusions.size(), false);
    for (const Fusion* fusion : chosen)
      for (std::size_t i = 0; i < fusion->owns.size(); ++i)
        if (is_vain(*fusion, i)) vain[static_cast<std::size_t>(fusion - fusions.data())] = true;
    std::size_t index = 0;
    return std::erase_if(fusions, [&](const Fusion&) { return vain[index++]; }) != 0;
  }

  const PlanRequest& request_;
  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // of what each node makes; kNone: the caller
};

}  // namespace

std::uint32_t by_hand(const PlanRequest& request, const Unit& unit) {
  return request.device_of_node.empty() ? kNone : request.device_of_node[unit.nodes.back()];
}

std::vector<Lane> lanes_for(const PlanRequest& request) {
  std::vector<Lane> lanes = lanes_of(request.devices, request.costs);
  if (request.homes.empty() || request.budget_bytes.empty()) return lanes;
  std::vector<std::uint64_t> held(memories_of(lanes), 0);
  for (TensorId tensor = 0; tensor < request.homes.size(); ++tensor)
    if (request.homes[tensor] != kNone)
      held[lanes[request.homes[tensor]].memory] += request.graph->tensor(tensor).operand.span_bytes();
  // Two stretches of weights are there at once, and values beside them.
  for (std::size_t device = 0; device < lanes.size(); ++device) {
    const std::uint64_t budget = request.budget_bytes[device];
    const std::uint64_t left = budget - std::min(budget, held[lanes[device].memory]);
    lanes[device].streamed_bytes = std::min(lanes[device].streamed_bytes, left / 8);
  }
  return lanes;
}

TensorId too_large_for(const PlanRequest& request, const Unit& unit, std::uint32_t device) {
  const std::uint64_t most = request.devices[device]->info().largest_binding_bytes;
  const auto too_large = [&](TensorId id) {
    return id != kNone && request.graph->tensor(id).operand.span_bytes() > most;
  };
  const auto input = std::ranges::find_if(unit.inputs, too_large);
  if (input != unit.inputs.end()) return *input;
  return too_large(unit.output) ? unit.output : kNone;
}

std::vector<Unit> choose_units(const PlanRequest& request) { return Chooser(request).choose(); }

}  // namespace shunt
