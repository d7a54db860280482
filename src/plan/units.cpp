#include "plan/units.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ops/op.h"

namespace shunt {
namespace {

// A fused op that may be chosen.
struct Fusion {
  Unit unit;
  std::vector<bool> owns;  // by unit.nodes: whether nobody else needs the node
};

class UnitChooser {
 public:
  UnitChooser(const PlanProblem& problem, std::span<const std::uint32_t> device_of_node, const UnitRules& rules)
      : problem_(problem),
        graph_(problem.graph),
        device_of_node_(device_of_node),
        rules_(rules),
        readers_(graph_.nodes().size()) {
    for (NodeId node = 0; node < graph_.nodes().size(); ++node)
      for (const TensorId input : graph_.nodes()[node].inputs) add_reader(input, node);
    for (const TensorId output : graph_.outputs()) add_reader(output, kNone);
  }

  [[nodiscard]] std::vector<Unit> choose() const {
    std::vector<Fusion> fusions = rules_.fuse ? find_paying() : std::vector<Fusion>();
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

  // The device that a unit is to run on; kNone: any.
  [[nodiscard]] std::uint32_t device_of(const Unit& unit) const {
    return device_of_node_.empty() ? kNone : device_of_node_[unit.nodes.back()];
  }

  [[nodiscard]] bool is_apart(const Unit& unit) const {
    return std::ranges::any_of(unit.nodes, [&](NodeId node) {
      const auto differs = [&](std::span<const std::uint32_t> numbers) {
        return !numbers.empty() && numbers[node] != numbers[unit.nodes.back()];
      };
      return differs(device_of_node_) || differs(rules_.apart);
    });
  }

  // Returns the least predicted time of a unit on any device that can run it; nothing if none can.
  [[nodiscard]] std::optional<double> best_us(const Unit& unit) const {
    const UnitCall call(graph_, unit);
    std::optional<double> best;
    for (std::uint32_t index = 0; index < problem_.devices.size(); ++index) {
      if (device_of(unit) != kNone && device_of(unit) != index) continue;
      const OpCost& cost = problem_.cost_cache->of(call.call(), index);
      if (!cost.support || problem_.too_large_for(unit, index) != kNone) continue;
      best = std::min(best.value_or(cost.compute.us), cost.compute.us);
    }
    return best;
  }

  // Returns how much of each node `unit` stands for, in order: all of it, unless others also read a result inside.
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
    const auto together = is_apart(fused) ? std::nullopt : best_us(fused);
    if (!together) return false;
    double apart = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto us = best_us(unit_of(graph_, fused.nodes[i]));
      if (!us) return true;
      apart += *us * shares[i];
    }
    return *together <= apart;
  }

  // Returns the fusions that pay, larger ones first.
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

  // Chooses fusions that can run together: no two own a node, and nobody repeats what another owns.
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

  // Drops fusions that repeat a result which is needed in memory anyway. False: there were none.
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

  const PlanProblem& problem_;
  const Graph& graph_;
  const std::span<const std::uint32_t> device_of_node_;
  const UnitRules& rules_;
  std::vector<std::vector<NodeId>> readers_;  // of what each node makes; kNone: the caller
};

}  // namespace

std::vector<Unit> choose_units(const PlanProblem& problem, std::span<const std::uint32_t> device_of_node,
                               const UnitRules& rules) {
  return UnitChooser(problem, device_of_node, rules).choose();
}

}  // namespace shunt
