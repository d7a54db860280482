#include "plan/choice.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "ops/op.h"
#include "plan/bound.h"
#include "plan/search.h"
#include "plan/units.h"

namespace shunt {
namespace {

// Where another device is preferred, one is taken as if it were as many times slower.
constexpr double kDislike = 1e3;

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

class Chooser {
 public:
  Chooser(const PlanRequest& request, bool fuse) : request_(request), graph_(*request.graph), together_(nodes()) {
    request_.fuse = fuse;
    problem_.lanes = lanes_for(request);
    price_units();
    join_users_of_state();
    add_items();
    add_suggestions();
    add_budgets();
  }

  [[nodiscard]] std::optional<Choice> choose() {
    const std::vector<SearchResult> alone = single_devices(problem_);
    const SearchResult mixed = search(problem_);
    const SearchResult& chosen = request_.preferred == kNone ? best_of(alone, mixed) : liked_of(alone, mixed);
    if (chosen.score.us == kCannot) return std::nullopt;
    Choice choice{.device_of_node = by_node(chosen), .rooms = rooms_beside(chosen)};
    // Times of devices that are not liked are not what they take.
    if (request_.preferred != kNone) return choice;
    const SearchResult& fastest = least_of(alone, mixed);
    if (fastest.score.us < chosen.score.us) choice.within_margin = by_node(fastest);
    if (chosen.score.over_bytes == 0) choice.bound_us = lower_bound_us(problem_, chosen.score.us);
    return choice;
  }

 private:
  [[nodiscard]] std::uint32_t group_of(NodeId node) { return group_of_root_[together_.find(node)]; }

  [[nodiscard]] std::vector<std::uint32_t> by_node(const SearchResult& result) {
    std::vector<std::uint32_t> device_of_node(nodes());
    for (NodeId node = 0; node < nodes(); ++node) device_of_node[node] = result.device_of_group[group_of(node)];
    return device_of_node;
  }

  // For each node and device what its group would hold there that the choice does not, and what the choice leaves.
  [[nodiscard]] std::vector<Choice::Room> rooms_beside(const SearchResult& chosen) {
    const std::vector<std::uint64_t>& budgets = problem_.budget_bytes;
    if (std::ranges::all_of(budgets, [](std::uint64_t bytes) { return bytes == kNoBudget; })) return {};
    const std::size_t devices = problem_.lanes.size();
    Evaluator evaluate(problem_);
    static_cast<void>(evaluate(chosen.device_of_group));
    const std::size_t pools = pools_of(problem_.lanes);
    std::vector<bool> is_held(problem_.held_bytes.size() * pools);
    for (const SearchProblem::Item& item : problem_.items)
      for (const std::uint32_t held : item.holds)
        is_held[held * pools + problem_.lanes[chosen.device_of_group[item.group]].pool] = true;
    std::vector<std::set<std::uint32_t>> holds(problem_.groups);
    for (const SearchProblem::Item& item : problem_.items)
      holds[item.group].insert(item.holds.begin(), item.holds.end());
    std::vector<Choice::Room> of_groups(problem_.groups * devices);
    for (std::size_t device = 0; device < devices; ++device) {
      const auto [pool, memory] = std::pair(problem_.lanes[device].pool, problem_.lanes[device].memory);
      const std::uint64_t used = std::min(evaluate.memory_bytes()[memory], budgets[memory]);
      for (std::size_t group = 0; group < problem_.groups; ++group) {
        Choice::Room& room = of_groups[group * devices + device];
        if (budgets[memory] != kNoBudget) room.free_bytes = budgets[memory] - used;
        for (const std::uint32_t held : holds[group])
          if (!is_held[held * pools + pool]) room.needed_bytes += problem_.held_bytes[held];
      }
    }
    if (request_.preferred != kNone) count_values(chosen, evaluate, of_groups);
    std::vector<Choice::Room> rooms;
    for (NodeId node = 0; node < nodes(); ++node)
      for (std::size_t device = 0; device < devices; ++device)
        rooms.push_back(of_groups[group_of(node) * devices + device]);
    return rooms;
  }

  // What the preferred device was passed over for may be room for values: all that a group would add there counts.
  void count_values(const SearchResult& chosen, Evaluator& evaluate, std::vector<Choice::Room>& of_groups) const {
    const std::uint32_t memory = problem_.lanes[request_.preferred].memory;
    for (std::size_t group = 0; group < problem_.groups; ++group) {
      if (chosen.device_of_group[group] == request_.preferred) continue;
      Choice::Room& room = of_groups[group * problem_.lanes.size() + request_.preferred];
      std::vector<std::uint32_t> moved = chosen.device_of_group;
      moved[group] = request_.preferred;
      if (evaluate(moved).over_bytes <= chosen.score.over_bytes) continue;
      const std::uint64_t before = problem_.budget_bytes[memory] - room.free_bytes;
      const std::uint64_t after = std::max(evaluate.memory_bytes()[memory], before);
      room.needed_bytes = std::max(room.needed_bytes, after - before);
    }
  }

  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(graph_.nodes().size()); }
  [[nodiscard]] bool is_layout(NodeId node) const {
    return info_of(graph_.nodes()[node].op).op_class == OpClass::layout;
  }

  // What each node costs on each device: a unit's whole time stands with the node that makes its result.
  void price_units() {
    us_.assign(nodes(), std::vector<double>(request_.devices.size(), 0));
    for (std::uint32_t device = 0; device < request_.devices.size(); ++device) {
      request_.device_of_node.assign(nodes(), device);
      for (const Unit& unit : choose_units(request_)) {
        for (const NodeId node : unit.nodes) together_.join(unit.nodes.back(), node);
        us_[unit.nodes.back()][device] = us_on(unit, device) * (is_disliked(device) ? kDislike : 1);
      }
    }
  }

  [[nodiscard]] bool is_disliked(std::uint32_t device) const {
    return request_.preferred != kNone && request_.preferred != device;
  }

  [[nodiscard]] double us_on(const Unit& unit, std::uint32_t device) const {
    const Price& price = request_.prices->of(UnitCall(graph_, unit).call(), device);
    if (!price.support || too_large_for(request_, unit, device) != kNone) return kCannot;
    for (const TensorId input : unit.inputs)
      if (input != kNone && state_elsewhere(graph_.tensor(input), device)) return kCannot;
    return price.compute.us;
  }

  [[nodiscard]] bool state_elsewhere(const TensorInfo& tensor, std::uint32_t device) const {
    const std::uint32_t home = home_of(request_, tensor.base);
    return tensor.operand.kind == TensorKind::state && home != kNone &&
           problem_.lanes[home].pool != problem_.lanes[device].pool;
  }

  void join_users_of_state() {
    std::map<TensorId, NodeId> users;
    for (NodeId node = 0; node < nodes(); ++node) {
      if (is_layout(node)) continue;
      for (const TensorId input : graph_.nodes()[node].inputs) {
        if (input == kNone || graph_.tensor(input).operand.kind != TensorKind::state) continue;
        const auto [user, is_new] = users.emplace(graph_.tensor(input).base, node);
        if (!is_new) together_.join(user->second, node);
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

  // A view runs nowhere.
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
    const std::uint32_t home = home_of(request_, base);
    if (kind == TensorKind::state && home != kNone) return;  // it is where the item must run
    const bool is_held = home == kNone && (kind == TensorKind::weight || kind == TensorKind::state);
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

  void add_suggestions() {
    if (request_.suggested.empty()) return;
    problem_.suggested.assign(problem_.groups, kNone);
    for (NodeId node = 0; node < nodes(); ++node)
      for (const TensorId input : graph_.nodes()[node].inputs)
        if (input != kNone && request_.suggested[input] != kNone)
          problem_.suggested[group_of_root_[together_.find(node)]] = request_.suggested[input];
  }

  void add_budgets() {
    problem_.budget_bytes.assign(memories_of(problem_.lanes), kNoBudget);
    for (std::size_t device = 0; device < request_.budget_bytes.size(); ++device) {
      std::uint64_t& budget = problem_.budget_bytes[problem_.lanes[device].memory];
      budget = std::min(budget, request_.budget_bytes[device]);
    }
    // What is there already.
    for (TensorId tensor = 0; tensor < request_.homes.size(); ++tensor) {
      if (request_.homes[tensor] == kNone) continue;
      std::uint64_t& budget = problem_.budget_bytes[problem_.lanes[request_.homes[tensor]].memory];
      if (budget != kNoBudget) budget -= std::min(budget, graph_.tensor(tensor).operand.span_bytes());
    }
  }

  [[nodiscard]] double margin() const {
    return margin_or_default(request_.margin, std::ranges::all_of(request_.costs, &DeviceCost::is_measured));
  }

  [[nodiscard]] static const SearchResult& least_of(std::span<const SearchResult> alone, const SearchResult& mixed) {
    const SearchResult& least = *std::ranges::min_element(alone, std::less<>(), &SearchResult::score);
    return mixed.score < least.score ? mixed : least;
  }

  // What is liked better, which is named first, unless another gains more than the margin.
  [[nodiscard]] const SearchResult& best_of(std::span<const SearchResult> alone, const SearchResult& mixed) const {
    const SearchResult* best = &alone.front();
    const auto gains = [&](const SearchResult& other) {
      if (other.score.over_bytes != best->score.over_bytes || best->score.us == kCannot)
        return other.score < best->score;
      return other.score.us * (1 + margin()) < best->score.us;
    };
    for (const SearchResult& other : alone)
      if (gains(other)) best = &other;
    return gains(mixed) ? mixed : *best;
  }

  // All on the preferred device, or as much as its memory holds.
  [[nodiscard]] const SearchResult& liked_of(std::span<const SearchResult> alone, const SearchResult& mixed) const {
    const SearchResult& liked = alone[request_.preferred];
    return liked.score.us != kCannot && liked.score.over_bytes == 0 ? liked : mixed;
  }

  PlanRequest request_;
  const Graph& graph_;
  Together together_;
  std::vector<std::vector<double>> us_;  // by node and device
  std::vector<std::uint32_t> number_of_value_;
  std::vector<std::uint32_t> number_of_held_;
  std::vector<std::uint32_t> group_of_root_;
  SearchProblem problem_;
};

}  // namespace

std::optional<Choice> choose_devices(const PlanRequest& request) {
  if (request.devices.size() == 1)
    return Choice{.device_of_node = std::vector<std::uint32_t>(request.graph->nodes().size(), 0)};
  if (auto fused = Chooser(request, request.fuse).choose()) return fused;
  return request.fuse ? Chooser(request, false).choose() : std::nullopt;
}

}  // namespace shunt
