#include "plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/op.h"
#include "plan/cost.h"

namespace shunt {
namespace {

class Placer {
 public:
  explicit Placer(const PlanRequest& request)
      : request_(request), graph_(*request.graph), readers_(graph_.nodes().size()) {
    for (NodeId node = 0; node < graph_.nodes().size(); ++node)
      for (const TensorId input : graph_.nodes()[node].inputs) add_reader(input, node);
    for (const TensorId output : graph_.outputs()) add_reader(output, kNone);
  }

  Result<Placement> place() {
    choose_units();
    Placement placement;
    for (const Unit& unit : units_) {
      SHUNT_TRY_ASSIGN(Decision decision, decide(unit));
      commit(unit, decision);
      placement.decisions.push_back(std::move(decision));
    }
    placement.units = std::move(units_);
    return placement;
  }

 private:
  void add_reader(TensorId tensor, NodeId reader) {
    const NodeId producer = tensor == kNone ? kNone : graph_.tensor(tensor).producer;
    if (producer != kNone) readers_[producer].push_back(reader);
  }

  [[nodiscard]] const DeviceInfo& device(std::uint32_t index) const { return request_.devices[index]->info(); }

  // A unit can be fused only where the caller put all of its nodes on one device.
  [[nodiscard]] std::uint32_t by_hand(const Unit& unit) const {
    return request_.device_of_node.empty() ? kNone : request_.device_of_node[unit.nodes.back()];
  }
  [[nodiscard]] bool split_by_hand(const Unit& unit) const {
    return std::ranges::any_of(unit.nodes, [&](NodeId node) {
      return !request_.device_of_node.empty() && request_.device_of_node[node] != by_hand(unit);
    });
  }

  // The cheapest predicted time of a unit on any device that can run it; nothing where none can.
  [[nodiscard]] std::optional<double> best_us(const Unit& unit) const {
    const UnitCall call(graph_, unit);
    std::optional<double> best;
    for (std::uint32_t index = 0; index < request_.devices.size(); ++index) {
      if (by_hand(unit) != kNone && by_hand(unit) != index) continue;
      const OpCall calls[] = {call.call()};
      if (!request_.devices[index]->supports(calls) || too_large_for(unit, index) != kNone) continue;
      const double us = predict_compute(calls[0], device(index)).us;
      best = std::min(best.value_or(us), us);
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

  // A fused row that may be chosen, and which of its nodes nobody else needs.
  struct Fusion {
    Unit unit;
    std::vector<bool> owns;  // as unit.nodes
  };

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

  void choose_units() {
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
    for (auto& [node, unit] : units) units_.push_back(std::move(unit));
  }

  // The first tensor of a unit that the device cannot bind whole, or kNone.
  [[nodiscard]] TensorId too_large_for(const Unit& unit, std::uint32_t index) const {
    const auto too_large = [&](TensorId id) {
      return id != kNone && graph_.tensor(id).operand.span_bytes() > device(index).largest_binding_bytes;
    };
    const auto input = std::ranges::find_if(unit.inputs, too_large);
    if (input != unit.inputs.end()) return *input;
    return too_large(unit.output) ? unit.output : kNone;
  }

  // State lives in the memory of the device that first used it.
  [[nodiscard]] bool state_elsewhere(const Unit& unit, std::uint32_t index) const {
    return std::ranges::any_of(unit.inputs, [&](TensorId input) {
      if (input == kNone) return false;
      const auto home = state_pool_.find(graph_.tensor(input).base);
      return home != state_pool_.end() && home->second != device(index).memory_pool;
    });
  }

  [[nodiscard]] Candidate judge(const Unit& unit, std::uint32_t index) const {
    Candidate candidate{.device = index};
    if (by_hand(unit) != kNone && by_hand(unit) != index) {
      candidate.reason = Reason::not_named;
      return candidate;
    }
    const UnitCall call(graph_, unit);
    const OpCall calls[] = {call.call()};
    if (Support support = request_.devices[index]->supports(calls); !support) {
      candidate.detail = std::move(support.reason);
      return candidate;
    }
    if (const TensorId id = too_large_for(unit, index); id != kNone) {
      candidate.reason = Reason::too_large;
      candidate.detail = fmt::format("\"{}\" has {} bytes, it binds {} at most", graph_.tensor(id).name,
                                     graph_.tensor(id).operand.span_bytes(), device(index).largest_binding_bytes);
      return candidate;
    }
    if (state_elsewhere(unit, index)) {
      candidate.reason = Reason::state_elsewhere;
      return candidate;
    }
    candidate.reason = Reason::higher_cost;
    predict(unit, calls[0], candidate);
    return candidate;
  }

  void predict(const Unit& unit, const OpCall& call, Candidate& candidate) const {
    const DeviceInfo& here = device(candidate.device);
    double ready = 0;
    for (const TensorId input : unit.inputs) {
      if (input == kNone) continue;
      const auto home = made_.find(graph_.tensor(input).base);
      if (home == made_.end()) continue;
      ready = std::max(ready, home->second.ready_us);
      const Prediction move =
          predict_transfer(graph_.tensor(input).operand.span_bytes(), device(home->second.device), here);
      candidate.transfer_us += move.us;
      candidate.uncertainty_us += move.uncertainty_us;
    }
    const Prediction compute = predict_compute(call, here);
    candidate.compute_us = compute.us;
    candidate.uncertainty_us += compute.uncertainty_us;
    const auto free = resource_free_us_.find(here.compute_resource);
    candidate.wait_us = std::max(0.0, (free == resource_free_us_.end() ? 0 : free->second) - ready);
  }

  Result<Decision> decide(const Unit& unit) const {
    Decision decision;
    std::uint32_t able = 0;
    std::uint32_t best = kNone;
    for (std::uint32_t index = 0; index < request_.devices.size(); ++index) {
      decision.candidates.push_back(judge(unit, index));
      if (decision.candidates.back().reason != Reason::higher_cost) continue;
      ++able;
      if (best == kNone || decision.candidates[index].total_us() < decision.candidates[best].total_us()) best = index;
    }
    if (best == kNone) return nobody_can(unit, decision);
    decision.device = best;
    decision.reason = by_hand(unit) != kNone ? Reason::placed_by_hand
                      : able == 1            ? Reason::only_candidate
                                             : Reason::lower_cost;
    decision.candidates[best].reason = decision.reason;
    return decision;
  }

  [[nodiscard]] std::unexpected<Error> nobody_can(const Unit& unit, const Decision& decision) const {
    std::string text = fmt::format("no device can run {} (node \"{}\")", to_string(UnitCall(graph_, unit).call()),
                                   graph_.nodes()[unit.nodes.back()].name);
    for (const Candidate& candidate : decision.candidates)
      text += fmt::format("; {}: {}", device(candidate.device).id,
                          candidate.detail.empty() ? name_of(candidate.reason) : candidate.detail);
    return fail(Code::unsupported, std::move(text));
  }

  void commit(const Unit& unit, const Decision& decision) {
    const Candidate& chosen = decision.candidates[decision.device];
    const DeviceInfo& here = device(decision.device);
    const TensorInfo& output = graph_.tensor(unit.output);
    for (const TensorId input : unit.inputs)
      if (input != kNone && graph_.tensor(input).operand.kind == TensorKind::state)
        state_pool_.emplace(graph_.tensor(input).base, here.memory_pool);
    double ready = 0;
    for (const TensorId input : unit.inputs)
      if (input != kNone)
        if (const auto home = made_.find(graph_.tensor(input).base); home != made_.end())
          ready = std::max(ready, home->second.ready_us);
    const double end = ready + chosen.total_us();
    resource_free_us_[here.compute_resource] = end;
    made_[output.base] = {decision.device, end};
  }

  struct Made {
    std::uint32_t device;
    double ready_us;
  };

  const PlanRequest& request_;
  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // of what each node makes; kNone: the caller
  std::vector<Unit> units_;
  std::map<TensorId, Made> made_;
  std::map<TensorId, std::string> state_pool_;
  std::map<std::string, double, std::less<>> resource_free_us_;
};

}  // namespace

Result<Placement> place(const PlanRequest& request) {
  if (!request.device_of_node.empty()) {
    if (request.device_of_node.size() != request.graph->nodes().size())
      return fail(Code::invalid, fmt::format("a placement by hand names {} nodes, the graph has {}",
                                             request.device_of_node.size(), request.graph->nodes().size()));
    for (const std::uint32_t index : request.device_of_node)
      if (index >= request.devices.size())
        return fail(Code::invalid,
                    fmt::format("a placement by hand names device {}, there are {}", index, request.devices.size()));
  }
  return Placer(request).place();
}

}  // namespace shunt
