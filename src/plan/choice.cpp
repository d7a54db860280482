#include "plan/choice.h"

#include <algorithm>
#include <functional>
#include <set>

#include "plan/bound.h"
#include "plan/groups.h"

namespace shunt {
namespace {

class Chooser {
 public:
  Chooser(const PlanProblem& problem, const Search& search, bool fuse)
      : given_(problem),
        wanted_(search),
        groups_(group_nodes(problem, {.fuse = fuse}, search.preferred)),
        problem_(groups_.problem) {
    add_suggestions();
  }

  [[nodiscard]] std::optional<Choice> choose() {
    const std::vector<SearchResult> alone = single_devices(problem_);
    const SearchResult mixed = search(problem_);
    const SearchResult chosen = wanted_.preferred == kNone ? best_of(alone, mixed) : preferred_of(alone, mixed);
    if (chosen.score.us == kCannot) return std::nullopt;
    Choice choice{.device_of_node = by_node(chosen), .rooms = rooms_beside(chosen)};
    // Times of avoided devices are inflated, and not comparable.
    if (wanted_.preferred != kNone) return choice;
    const SearchResult fastest = least_of(alone, mixed);
    if (fastest.score.us < chosen.score.us) choice.within_margin = by_node(fastest);
    if (chosen.score.over_bytes == 0) choice.bound_us = lower_bound_us(problem_, chosen.score.us);
    return choice;
  }

 private:
  [[nodiscard]] std::vector<std::uint32_t> by_node(const SearchResult& result) const {
    std::vector<std::uint32_t> device_of_node(nodes());
    for (NodeId node = 0; node < nodes(); ++node) device_of_node[node] = result.device_of_group[groups_.of_node[node]];
    return device_of_node;
  }

  [[nodiscard]] std::vector<Choice::Room> rooms_beside(const SearchResult& chosen) const {
    const std::size_t devices = problem_.lanes.size();
    const std::vector<double> us = us_of_groups(problem_);
    std::vector<Choice::Room> of_groups(us.size());
    for (std::size_t i = 0; i < us.size(); ++i) of_groups[i].can_run = us[i] != kCannot;
    if (!std::ranges::all_of(problem_.budget_bytes, [](std::uint64_t bytes) { return bytes == kNoBudget; }))
      count_bytes(chosen, of_groups);
    std::vector<Choice::Room> rooms;
    for (NodeId node = 0; node < nodes(); ++node)
      for (std::size_t device = 0; device < devices; ++device)
        rooms.push_back(of_groups[groups_.of_node[node] * devices + device]);
    return rooms;
  }

  // Counts, for each group and device, the bytes that the group would add there, and the bytes that the choice leaves
  // free.
  void count_bytes(const SearchResult& chosen, std::vector<Choice::Room>& of_groups) const {
    const std::vector<std::uint64_t>& budgets = problem_.budget_bytes;
    const std::size_t devices = problem_.lanes.size();
    Evaluator evaluate(problem_);
    static_cast<void>(evaluate(chosen.device_of_group));
    const std::size_t pools = pools_of(problem_.lanes);
    std::vector<bool> is_held(problem_.held_bytes.size() * pools);
    std::vector<std::set<std::uint32_t>> holds(problem_.groups);
    for (const SearchProblem::Item& item : problem_.items) {
      holds[item.group].insert(item.holds.begin(), item.holds.end());
      for (const std::uint32_t held : item.holds)
        is_held[held * pools + problem_.lanes[chosen.device_of_group[item.group]].pool] = true;
    }
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
    if (wanted_.preferred != kNone) count_values(chosen, evaluate, of_groups);
  }

  // The preferred device may have been passed over for lack of room for values, so count all that a group would add
  // there.
  void count_values(const SearchResult& chosen, Evaluator& evaluate, std::vector<Choice::Room>& of_groups) const {
    const std::uint32_t memory = problem_.lanes[wanted_.preferred].memory;
    for (std::size_t group = 0; group < problem_.groups; ++group) {
      if (chosen.device_of_group[group] == wanted_.preferred) continue;
      Choice::Room& room = of_groups[group * problem_.lanes.size() + wanted_.preferred];
      std::vector<std::uint32_t> moved = chosen.device_of_group;
      moved[group] = wanted_.preferred;
      if (evaluate(moved).over_bytes <= chosen.score.over_bytes) continue;
      const std::uint64_t before = problem_.budget_bytes[memory] - room.free_bytes;
      const std::uint64_t after = std::max(evaluate.memory_bytes()[memory], before);
      room.needed_bytes = std::max(room.needed_bytes, after - before);
    }
  }

  [[nodiscard]] NodeId nodes() const { return static_cast<NodeId>(groups_.of_node.size()); }

  void add_suggestions() {
    if (wanted_.suggested.empty()) return;
    problem_.suggested.assign(problem_.groups, kNone);
    for (NodeId node = 0; node < nodes(); ++node)
      for (const TensorId input : given_.graph.nodes()[node].inputs)
        if (input != kNone && wanted_.suggested[input] != kNone)
          problem_.suggested[groups_.of_node[node]] = wanted_.suggested[input];
  }

  [[nodiscard]] double margin() const { return margin_or_default(wanted_.margin, given_.is_measured()); }

  [[nodiscard]] static SearchResult least_of(std::span<const SearchResult> alone, const SearchResult& mixed) {
    const SearchResult& least = *std::ranges::min_element(alone, std::less<>(), &SearchResult::score);
    return mixed.score < least.score ? mixed : least;
  }

  // Returns the first device, unless another choice gains more than the margin.
  [[nodiscard]] SearchResult best_of(std::span<const SearchResult> alone, const SearchResult& mixed) const {
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

  // Returns everything on the preferred device, or as much as its memory holds.
  [[nodiscard]] SearchResult preferred_of(std::span<const SearchResult> alone, const SearchResult& mixed) const {
    const SearchResult& all = alone[wanted_.preferred];
    return all.score.us != kCannot && all.score.over_bytes == 0 ? all : mixed;
  }

  const PlanProblem& given_;
  const Search& wanted_;
  Groups groups_;
  SearchProblem& problem_;
};

}  // namespace

std::optional<Choice> choose_devices(const PlanProblem& problem, const Search& search) {
  if (problem.devices.size() == 1)
    return Choice{.device_of_node = std::vector<std::uint32_t>(problem.graph.nodes().size(), 0)};
  if (auto fused = Chooser(problem, search, problem.fuse).choose()) return fused;
  return problem.fuse ? Chooser(problem, search, false).choose() : std::nullopt;
}

}  // namespace shunt
