#include "plan/groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "ops/op.h"

namespace shunt {
namespace {

// The factor by which other devices count as slower if one is preferred.
constexpr double kAvoided = 1e3;

// Sets of nodes that must stay together.
class Together {
 public:
  explicit Together(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::uint32_t find(std::uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<std::uint32_t> parent_;
};

class Grouping {
 public:
  Grouping(const PlanProblem& problem, const UnitRules& rules, std::uint32_t preferred)
      : given_(problem), graph_(problem.graph), rules_(rules), preferred_(preferred), together_(nodes()) {}

  Groups make() {
    problem_.lanes = given_.lanes;
    price_units();
    keep_to_measurements();
    join_users();
    add_items();
    add_budgets();
    std::vector<std::uint32_t> group_of_node(nodes());
    for (NodeId node = 0; node < nodes(); ++node) group_of_node[node] = group_of_root_[together_.find(node)];
    return {std::move(problem_), std::move(group_of_node)};
  }

 private:
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(graph_.nodes().size()); }
  [[nodiscard]] bool is_layout(NodeId node) const {
    return info_of(graph_.nodes()[node].op).op_class == OpClass::layout;
  }

  // Predicts each node on each device. The time of a unit is charged to the node that makes its result.
  void price_units() {
    us_.assign(nodes(), std::vector<double>(given_.devices.size(), 0));
    for (std::uint32_t device = 0; device < given_.devices.size(); ++device) {
      const std::vector<std::uint32_t> device_of_node(nodes(), device);
      for (const Unit& unit : choose_units(given_, device_of_node, rules_)) {
        for (const NodeId node : unit.nodes) together_.join(unit.nodes.back(), node);
        us_[unit.nodes.back()][device] = us_on(unit, device) * (is_avoided(device) ? kAvoided : 1);
      }
    }
  }

  [[nodiscard]] bool is_avoided(std::uint32_t device) const { return preferred_ != kNone && preferred_ != device; }

  // Devices by their priors are no faster than what was measured of the same processors.
  void keep_to_measurements() {
    for (std::uint32_t device = 0; device < given_.devices.size(); ++device) {
      const std::uint32_t twin = given_.measured_twin_of(device);
      if (twin == kNone) continue;
      problem_.lanes[device].launch_us = std::max(problem_.lanes[device].launch_us, problem_.lanes[twin].launch_us);
      problem_.lanes[device].wake_us = std::max(problem_.lanes[device].wake_us, problem_.lanes[twin].wake_us);
      for (std::vector<double>& us : us_)
        if (us[twin] != kCannot) us[device] = std::max(us[device], us[twin]);
    }
  }

  [[nodiscard]] double us_on(const Unit& unit, std::uint32_t device) const {
    const OpCost& cost = given_.cost_cache->of(UnitCall(graph_, unit).call(), device);
    if (!cost.support || given_.too_large_for(unit, device) != kNone) return kCannot;
    for (const TensorId input : unit.inputs)
      if (input != kNone && given_.stays_elsewhere(graph_.tensor(input).base, device)) return kCannot;
    return cost.compute.us;
  }

  // Joins nodes that use the same state, and nodes that do the same with one weight, which are pieces of a step: apart,
  // they would be many choices for little. Small weights are everywhere, and used by what has nothing else in common.
  void join_users() {
    std::map<std::tuple<TensorId, std::optional<Op>, std::size_t>, NodeId> users;
    for (NodeId node = 0; node < nodes(); ++node) {
      if (is_layout(node)) continue;
      const Node& user = graph_.nodes()[node];
      for (std::size_t input = 0; input < user.inputs.size(); ++input) {
        if (user.inputs[input] == kNone) continue;
        const TensorInfo& tensor = graph_.tensor(user.inputs[input]);
        const bool is_state = tensor.operand.kind == TensorKind::state;
        if (!is_state && (tensor.operand.kind != TensorKind::weight || is_small_weight(tensor.operand))) continue;
        const auto use = is_state ? std::tuple(tensor.base, std::optional<Op>(), std::size_t{0})
                                  : std::tuple(tensor.base, std::optional(user.op), input);
        const auto [first, is_new] = users.emplace(use, node);
        if (!is_new) together_.join(first->second, node);
      }
    }
  }

  void add_items() {
    number_of_value_.assign(graph_.tensors().size(), kNone);
    number_of_held_.assign(graph_.tensors().size(), kNone);
    group_of_root_.assign(nodes(), kNone);
    for (NodeId node = 0; node < nodes(); ++node) {
      if (is_layout(node)) join_with_producer(node);
      std::uint32_t& group = group_of_root_[together_.find(node)];
      if (group == kNone) group = problem_.groups++;
      if (is_layout(node)) continue;
      SearchProblem::Item item{.group = group, .made = kNone, .reads = {}, .holds = {}, .us = us_[node]};
      for (const TensorId input : graph_.nodes()[node].inputs)
        if (input != kNone) add_operand(item, graph_.tensor(input).base);
      const TensorId made = graph_.tensor(graph_.nodes()[node].output).base;
      if (graph_.tensor(made).operand.kind != TensorKind::state) item.made = value(made);
      problem_.items.push_back(std::move(item));
    }
    for (const TensorId output : graph_.outputs())
      if (graph_.tensor(graph_.tensor(output).base).operand.kind == TensorKind::value)
        problem_.outputs.push_back(value(graph_.tensor(output).base));
  }

  // A view does not run by itself.
  void join_with_producer(NodeId node) {
    for (const TensorId input : graph_.nodes()[node].inputs)
      if (input != kNone && graph_.tensor(input).producer != kNone) together_.join(graph_.tensor(input).producer, node);
  }

  std::uint32_t value(TensorId base) {
    if (number_of_value_[base] == kNone) {
      number_of_value_[base] = static_cast<std::uint32_t>(problem_.value_bytes.size());
      problem_.value_bytes.push_back(graph_.tensor(base).operand.span_bytes());
    }
    return number_of_value_[base];
  }

  void add_operand(SearchProblem::Item& item, TensorId base) {
    const TensorKind kind = graph_.tensor(base).operand.kind;
    const std::uint32_t home = given_.home_of(base);
    // The item must run where what stays is; small weights are everywhere.
    const bool is_kept = kind == TensorKind::weight || kind == TensorKind::state;
    if (home != kNone && is_kept && !given_.may_travel(base)) return;
    const bool is_held = home == kNone && is_kept;
    if (is_held && number_of_held_[base] == kNone) {
      number_of_held_[base] = static_cast<std::uint32_t>(problem_.held_bytes.size());
      problem_.held_bytes.push_back(graph_.tensor(base).operand.span_bytes());
    }
    std::vector<std::uint32_t>& list = is_held ? item.holds : item.reads;
    const std::uint32_t number = is_held ? number_of_held_[base] : value(base);
    if (home != kNone) {
      problem_.homes.resize(problem_.value_bytes.size(), kNone);
      problem_.homes[number] = home;
    }
    if (std::ranges::find(list, number) == list.end()) list.push_back(number);
  }

  void add_budgets() {
    problem_.budget_bytes.assign(memories_of(problem_.lanes), kNoBudget);
    for (std::size_t device = 0; device < given_.budget_bytes.size(); ++device) {
      std::uint64_t& budget = problem_.budget_bytes[problem_.lanes[device].memory];
      budget = std::min(budget, given_.budget_bytes[device]);
    }
    // Subtract what is already there.
    for (TensorId tensor = 0; tensor < given_.homes.size(); ++tensor) {
      if (given_.homes[tensor] == kNone) continue;
      std::uint64_t& budget = problem_.budget_bytes[problem_.lanes[given_.homes[tensor]].memory];
      if (budget != kNoBudget) budget -= std::min(budget, graph_.tensor(tensor).operand.span_bytes());
    }
  }

  const PlanProblem& given_;
  const Graph& graph_;
  const UnitRules& rules_;
  const std::uint32_t preferred_;
  Together together_;
  std::vector<std::vector<double>> us_;  // by node and device
  std::vector<std::uint32_t> number_of_value_;
  std::vector<std::uint32_t> number_of_held_;
  std::vector<std::uint32_t> group_of_root_;
  SearchProblem problem_;
};

}  // namespace

Groups group_nodes(const PlanProblem& problem, const UnitRules& rules, std::uint32_t preferred) {
  return Grouping(problem, rules, preferred).make();
}

}  // namespace shunt
