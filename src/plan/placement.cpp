#include "plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/op.h"
#include "ops/units.h"
#include "plan/choice.h"
#include "plan/timeline.h"
#include "plan/units.h"

namespace shunt {
namespace {

class Placer {
 public:
  explicit Placer(const PlanRequest& request) : request_(request), graph_(*request.graph), lanes_(lanes_for(request)) {}

  Result<Placement> place() {
    for (TensorId tensor = 0; tensor < request_.homes.size(); ++tensor)
      if (request_.homes[tensor] != kNone && graph_.tensor(tensor).operand.kind == TensorKind::state)
        state_pool_.emplace(tensor, device(request_.homes[tensor]).memory_pool);
    if (is_by_hand())
      choice_.device_of_node = request_.device_of_node;
    else if (auto choice = choose_devices(request_))
      choice_ = *std::move(choice);
    PlanRequest placed = request_;
    placed.device_of_node = choice_.device_of_node;
    Placement placement{.units = choose_units(placed), .decisions = {}, .bound_us = choice_.bound_us};
    for (const Unit& unit : placement.units) {
      SHUNT_TRY_ASSIGN(Decision decision, decide(unit));
      commit(unit, decision);
      placement.decisions.push_back(std::move(decision));
    }
    return placement;
  }

 private:
  [[nodiscard]] const DeviceInfo& device(std::uint32_t index) const { return request_.devices[index]->info(); }

  [[nodiscard]] bool is_by_hand() const { return !request_.device_of_node.empty(); }
  // Where a unit is to run; kNone: wherever it ends first.
  [[nodiscard]] std::uint32_t chosen_for(const Unit& unit) const {
    return choice_.device_of_node.empty() ? kNone : choice_.device_of_node[unit.nodes.back()];
  }

  [[nodiscard]] bool follows_weights() const { return is_by_hand() && request_.reason == Reason::where_weights_are; }

  // Where a weight of a unit is that `index` would have to copy; kNone: it would not.
  [[nodiscard]] std::uint32_t copied_from(const Unit& unit, TensorId base, std::uint32_t index) const {
    const std::uint32_t home = follows_weights() ? by_hand(request_, unit) : home_of(request_, base);
    const bool is_weight = graph_.tensor(base).operand.kind == TensorKind::weight;
    return is_weight && home != kNone && lanes_[home].pool != lanes_[index].pool ? home : kNone;
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
    if (is_by_hand() && !follows_weights() && by_hand(request_, unit) != index) {
      candidate.reason = Reason::not_named;
      return candidate;
    }
    const Price& price = request_.prices->of(UnitCall(graph_, unit).call(), index);
    if (!price.support) {
      candidate.detail = price.support.reason;
      return candidate;
    }
    if (const TensorId id = too_large_for(request_, unit, index); id != kNone) {
      candidate.reason = Reason::too_large;
      candidate.detail =
          fmt::format("\"{}\" has {}, it binds {} at most", graph_.tensor(id).name,
                      in_units(graph_.tensor(id).operand.span_bytes()), in_units(device(index).largest_binding_bytes));
      return candidate;
    }
    if (state_elsewhere(unit, index)) {
      candidate.reason = Reason::state_elsewhere;
      return candidate;
    }
    candidate.reason = Reason::higher_cost;
    predict(unit, price.compute, candidate);
    return candidate;
  }

  void predict(const Unit& unit, const Prediction& compute, Candidate& candidate) const {
    const DeviceInfo& here = device(candidate.device);
    double ready = 0;
    for (const TensorId input : unit.inputs) {
      if (input == kNone) continue;
      const TensorId base = graph_.tensor(input).base;
      if (const std::uint32_t from = copied_from(unit, base, candidate.device); from != kNone) {
        const Prediction move =
            predict_copy(lanes_[from], lanes_[candidate.device], graph_.tensor(base).operand.span_bytes());
        candidate.transfer_us += move.us;
        candidate.uncertainty_us += move.uncertainty_us;
      }
      const auto home = made_.find(base);
      if (home == made_.end()) continue;
      ready = std::max(ready, home->second.ready_us);
      const Prediction move = predict_copy(lanes_[home->second.device], lanes_[candidate.device],
                                           graph_.tensor(input).operand.span_bytes());
      candidate.transfer_us += move.us;
      candidate.uncertainty_us += move.uncertainty_us;
    }
    candidate.measured = request_.costs[candidate.device].is_measured();
    candidate.compute_us = compute.us;
    candidate.uncertainty_us += compute.uncertainty_us;
    const auto free = resource_free_us_.find(here.compute_resource);
    candidate.wait_us = std::max(0.0, (free == resource_free_us_.end() ? 0 : free->second) - ready);
  }

  Result<Decision> decide(const Unit& unit) const {
    Decision decision;
    std::uint32_t best = kNone;
    for (std::uint32_t index = 0; index < request_.devices.size(); ++index) {
      decision.candidates.push_back(judge(unit, index));
      if (decision.candidates.back().reason != Reason::higher_cost) continue;
      if (best == kNone || decision.candidates[index].total_us() < decision.candidates[best].total_us()) best = index;
    }
    const std::uint32_t chosen = chosen_for(unit);
    const bool is_possible = chosen != kNone && decision.candidates[chosen].reason == Reason::higher_cost;
    if (best == kNone || (is_by_hand() && !is_possible)) return nobody_can(unit, decision);
    decision.device = is_possible ? chosen : best;
    for (Candidate& candidate : decision.candidates)
      if (candidate.device != decision.device && candidate.reason == Reason::higher_cost)
        reject(unit, decision, candidate);
    decision.reason = reason_of(decision);
    decision.candidates[decision.device].reason = decision.reason;
    return decision;
  }

  // Says why one that can run a unit does not.
  void reject(const Unit& unit, const Decision& decision, Candidate& candidate) const {
    const NodeId node = unit.nodes.back();
    const bool is_slower = candidate.total_us() >= decision.candidates[decision.device].total_us();
    const bool is_liked = candidate.device == request_.preferred;
    Choice::Room room;
    if (!choice_.rooms.empty()) room = choice_.rooms[node * request_.devices.size() + candidate.device];
    if (follows_weights()) {
      candidate.reason = Reason::weights_elsewhere;
    } else if (decision.device == request_.preferred) {
      candidate.reason = Reason::not_preferred;
    } else if ((!is_slower || is_liked) && room.needed_bytes > room.free_bytes) {
      candidate.reason = Reason::no_memory;
      candidate.detail =
          fmt::format("needs {} more, {} are left", in_units(room.needed_bytes), in_units(room.free_bytes));
    } else if (!choice_.within_margin.empty() && choice_.within_margin[node] == candidate.device) {
      candidate.reason = Reason::within_margin;
    } else if (!is_slower) {
      candidate.reason = Reason::higher_cost_of_all;
    }
  }

  // Why the chosen one runs it, when all others are judged.
  [[nodiscard]] Reason reason_of(const Decision& decision) const {
    if (is_by_hand()) return request_.reason;
    if (decision.device == request_.preferred) return Reason::preferred;
    if (request_.preferred != kNone && decision.candidates[request_.preferred].reason == Reason::no_memory)
      return Reason::preferred_is_full;
    const auto is_other = [&](Reason reason) {
      return std::ranges::any_of(decision.candidates, [&](const Candidate& candidate) {
        return candidate.device != decision.device && candidate.reason == reason;
      });
    };
    if (is_other(Reason::within_margin)) return Reason::kept;
    if (is_other(Reason::higher_cost_of_all)) return Reason::lower_cost_of_all;
    return is_other(Reason::higher_cost) ? Reason::lower_cost : Reason::only_candidate;
  }

  [[nodiscard]] std::unexpected<Error> nobody_can(const Unit& unit, const Decision& decision) const {
    std::string text = fmt::format("no device can run {} (node \"{}\")", to_string(UnitCall(graph_, unit).call()),
                                   graph_.nodes()[unit.nodes.back()].name);
    for (const Candidate& candidate : decision.candidates) {
      const Reason reason = candidate.reason == Reason::higher_cost ? Reason::weights_elsewhere : candidate.reason;
      text += fmt::format("; {}: {}", device(candidate.device).id,
                          candidate.detail.empty() ? name_of(reason) : candidate.detail);
    }
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
  std::vector<Lane> lanes_;
  Choice choice_;  // without devices: each unit where it ends first
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
