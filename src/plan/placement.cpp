#include "plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "base/units.h"
#include "ops/op.h"
#include "plan/choice.h"
#include "plan/units.h"

namespace shunt {
namespace {

class Placer {
 public:
  Placer(const PlanProblem& problem, const Where& where) : problem_(problem), graph_(problem.graph), where_(where) {}

  Result<Placement> place() {
    for (TensorId tensor = 0; tensor < problem_.homes.size(); ++tensor)
      if (graph_.tensor(tensor).operand.kind == TensorKind::state && problem_.must_stay(tensor))
        state_pool_.emplace(tensor, device(problem_.homes[tensor]).memory_pool);
    if (const Search* search = std::get_if<Search>(&where_)) {
      preferred_ = search->preferred;
      if (auto choice = choose_devices(problem_, *search)) choice_ = *std::move(choice);
    } else {
      choice_.device_of_node = *given_places(where_);
    }
    Placement placement{.units = choose_units(problem_, choice_.device_of_node, {.fuse = problem_.fuse}),
                        .decisions = {},
                        .bound_us = choice_.bound_us};
    for (const Unit& unit : placement.units) {
      SHUNT_TRY_ASSIGN(Decision decision, decide(unit));
      keep_state(unit, device(decision.device).memory_pool);
      placement.decisions.push_back(std::move(decision));
    }
    return placement;
  }

 private:
  [[nodiscard]] const DeviceInfo& device(std::uint32_t index) const { return problem_.devices[index]->info(); }

  [[nodiscard]] bool is_given() const { return given_places(where_) != nullptr; }
  [[nodiscard]] bool follows_weights() const { return std::holds_alternative<FollowWeights>(where_); }
  // The device that a unit is to run on; kNone: the fastest.
  [[nodiscard]] std::uint32_t chosen_for(const Unit& unit) const {
    return choice_.device_of_node.empty() ? kNone : choice_.device_of_node[unit.nodes.back()];
  }
  [[nodiscard]] Choice::Room room_of(const Unit& unit, std::uint32_t index) const {
    return choice_.rooms.empty() ? Choice::Room() : choice_.rooms[unit.nodes.back() * problem_.devices.size() + index];
  }

  // State lives in the memory of the device that first used it.
  void keep_state(const Unit& unit, const std::string& pool) {
    for (const TensorId input : unit.inputs)
      if (input != kNone && graph_.tensor(input).operand.kind == TensorKind::state)
        state_pool_.emplace(graph_.tensor(input).base, pool);
  }
  [[nodiscard]] bool state_elsewhere(const Unit& unit, std::uint32_t index) const {
    return std::ranges::any_of(unit.inputs, [&](TensorId input) {
      if (input == kNone) return false;
      const auto home = state_pool_.find(graph_.tensor(input).base);
      return home != state_pool_.end() && home->second != device(index).memory_pool;
    });
  }

  [[nodiscard]] bool weight_elsewhere(const Unit& unit, std::uint32_t index) const {
    return std::ranges::any_of(unit.inputs, [&](TensorId input) {
      return input != kNone && graph_.tensor(input).operand.kind == TensorKind::weight &&
             problem_.stays_elsewhere(graph_.tensor(input).base, index);
    });
  }

  [[nodiscard]] Candidate judge(const Unit& unit, std::uint32_t index) const {
    Candidate candidate{.device = index, .measured = problem_.costs[index].is_measured()};
    if (std::holds_alternative<GivenPlaces>(where_) && chosen_for(unit) != index) {
      candidate.reason = Reason::not_named;
      return candidate;
    }
    const OpCost& cost = problem_.cost_cache->of(UnitCall(graph_, unit).call(), index);
    if (!cost.support) {
      candidate.detail = cost.support.reason;
      if (chosen_for(unit) != kNone && chosen_for(unit) != index) judge_apart(unit, candidate);
      return candidate;
    }
    if (const TensorId id = problem_.too_large_for(unit, index); id != kNone) {
      candidate.reason = Reason::too_large;
      candidate.detail =
          fmt::format("\"{}\" has {}, it binds {} at most", graph_.tensor(id).name,
                      in_units(graph_.tensor(id).operand.span_bytes()), in_units(device(index).largest_binding_bytes));
      return candidate;
    }
    if (state_elsewhere(unit, index) || weight_elsewhere(unit, index)) {
      candidate.reason = state_elsewhere(unit, index) ? Reason::state_elsewhere : Reason::weights_elsewhere;
      return candidate;
    }
    candidate.reason = Reason::higher_cost;
    candidate.arithmetic = cost.support.arithmetic;
    candidate.kernel = cost.support.kernel.name;
    candidate.kernel_measured = cost.support.kernel.is_measured;
    take(cost.compute, candidate);
    return candidate;
  }

  // Adds up the costs of a fused op's nodes, for a device that lacks the op.
  void judge_apart(const Unit& unit, Candidate& candidate) const {
    if (unit.nodes.size() == 1) return;
    Prediction all;
    for (const NodeId node : unit.nodes) {
      const Unit alone = unit_of(graph_, node);
      const OpCost& cost = problem_.cost_cache->of(UnitCall(graph_, alone).call(), candidate.device);
      if (!cost.support || problem_.too_large_for(alone, candidate.device) != kNone ||
          state_elsewhere(alone, candidate.device) || weight_elsewhere(alone, candidate.device))
        return;
      all.us += cost.compute.us;
      all.uncertainty_us += cost.compute.uncertainty_us;
    }
    candidate.reason = Reason::higher_cost;
    candidate.detail = fmt::format("as {} ops", unit.nodes.size());
    take(all, candidate);
  }

  void take(const Prediction& prediction, Candidate& candidate) const {
    candidate.compute_us = prediction.us;
    candidate.uncertainty_us = prediction.uncertainty_us;
    candidate.measured = problem_.costs[candidate.device].rests_on_measurements(prediction);
  }

  Result<Decision> decide(const Unit& unit) const {
    Decision decision;
    const auto can_run = [](const Candidate& candidate) { return candidate.reason == Reason::higher_cost; };
    std::uint32_t fastest = kNone;
    for (std::uint32_t index = 0; index < problem_.devices.size(); ++index) {
      decision.candidates.push_back(judge(unit, index));
      const Candidate& candidate = decision.candidates.back();
      if (can_run(candidate) && (fastest == kNone || candidate.compute_us < decision.candidates[fastest].compute_us))
        fastest = index;
    }
    const std::uint32_t chosen = chosen_for(unit);
    const bool is_possible = chosen != kNone && can_run(decision.candidates[chosen]);
    if (fastest == kNone || (is_given() && !is_possible)) return nobody_can(unit, decision);
    decision.device = is_possible ? chosen : fastest;
    for (Candidate& candidate : decision.candidates)
      if (candidate.device != decision.device && can_run(candidate)) reject(unit, decision, candidate);
    decision.reason = reason_of(decision);
    decision.candidates[decision.device].reason = decision.reason;
    return decision;
  }

  // Gives the reason that a device that can run a unit does not.
  void reject(const Unit& unit, const Decision& decision, Candidate& candidate) const {
    const Choice::Room room = room_of(unit, candidate.device);
    if (follows_weights()) {
      candidate.reason = Reason::weights_elsewhere;
    } else if (!room.can_run) {
      candidate.reason = Reason::group_cannot;
    } else if (decision.device == preferred_) {
      candidate.reason = Reason::not_preferred;
    } else if (room.is_lacking()) {
      candidate.reason = Reason::no_memory;
      candidate.detail =
          fmt::format("needs {} more, but {} are free", in_units(room.needed_bytes), in_units(room.free_bytes));
    } else if (!choice_.within_margin.empty() && choice_.within_margin[unit.nodes.back()] == candidate.device) {
      candidate.reason = Reason::within_margin;
    }
  }

  [[nodiscard]] Reason reason_of(const Decision& decision) const {
    if (follows_weights()) return Reason::where_weights_are;
    return is_given() ? Reason::placed_by_hand : reason_found(decision, preferred_);
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

  const PlanProblem& problem_;
  const Graph& graph_;
  const Where& where_;
  std::uint32_t preferred_ = kNone;
  Choice choice_;  // empty device_of_node: each unit runs where it is fastest
  std::map<TensorId, std::string> state_pool_;
};

}  // namespace

const std::vector<std::uint32_t>* given_places(const Where& where) {
  if (const auto* given = std::get_if<GivenPlaces>(&where)) return &given->device_of_node;
  const auto* followed = std::get_if<FollowWeights>(&where);
  return followed == nullptr ? nullptr : &followed->device_of_node;
}

Reason reason_found(const Decision& decision, std::uint32_t preferred) {
  if (decision.device == preferred) return Reason::preferred;
  if (preferred != kNone && decision.candidates[preferred].reason == Reason::no_memory)
    return Reason::preferred_is_full;
  const auto is_other = [&](Reason reason) {
    return std::ranges::any_of(decision.candidates, [&](const Candidate& candidate) {
      return candidate.device != decision.device && candidate.reason == reason;
    });
  };
  if (is_other(Reason::within_margin)) return Reason::kept;
  if (is_other(Reason::higher_cost) || is_other(Reason::not_tried)) return Reason::lower_cost;
  return is_other(Reason::no_memory) ? Reason::others_are_full : Reason::only_candidate;
}

Result<Placement> place(const PlanProblem& problem, const Where& where) { return Placer(problem, where).place(); }

}  // namespace shunt
