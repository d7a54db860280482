#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "base/units.h"
#include "plan/groups.h"
#include "plan/placement.h"
#include "plan/planner.h"
#include "plan/problem.h"

namespace shunt {
namespace {

class Explainer {
 public:
  Explainer(const PlanRequest& request, Plan& plan)
      : problem_(request),
        plan_(plan),
        device_of_node_(devices_of_nodes(plan, problem_.graph)),
        groups_(group_nodes(problem_, {.fuse = problem_.fuse, .apart = device_of_node_}, kNone)),
        evaluate_(groups_.problem),
        device_of_group_(groups_.problem.groups, 0) {
    for (NodeId node = 0; node < device_of_node_.size(); ++node)
      device_of_group_[groups_.of_node[node]] = device_of_node_[node];
    now_ = evaluate_(device_of_group_);
    const auto* search = std::get_if<Search>(&request.where);
    if (search == nullptr) return;
    preferred_ = search->preferred;
    // Once the search uses several devices, it takes any gain.
    const auto first = device_of_group_.empty() ? 0 : device_of_group_.front();
    if (preferred_ == kNone && std::ranges::all_of(device_of_group_, [&](auto device) { return device == first; }))
      margin_ = margin_or_default(search->margin, problem_.is_measured());
  }

  void run() {
    for (std::size_t unit = 0; unit < plan_.units.size(); ++unit) {
      Decision& decision = plan_.decisions[unit];
      decision.group = groups_.of_node[plan_.units[unit].nodes.back()];
      decision.candidates[decision.device].added_us = 0;
      for (Candidate& candidate : decision.candidates)
        if (candidate.device != decision.device && candidate.compute_us > 0) compare(decision, candidate);
      if (!is_searched(decision.reason)) continue;
      decision.reason = reason_found(decision, preferred_);
      decision.candidates[decision.device].reason = decision.reason;
    }
  }

 private:
  // Scores the placement with one group moved.
  const Score& moved(std::uint32_t group, std::uint32_t device) {
    const auto [known, is_new] = moved_.try_emplace({group, device});
    if (!is_new) return known->second;
    const std::uint32_t before = std::exchange(device_of_group_[group], device);
    known->second = evaluate_(device_of_group_);
    device_of_group_[group] = before;
    return known->second;
  }

  static bool is_searched(Reason reason) {
    return reason != Reason::where_weights_are && reason != Reason::placed_by_hand;
  }

  void compare(const Decision& decision, Candidate& candidate) {
    const std::vector<Lane>& lanes = problem_.lanes;
    // In the same memory, a move also frees bytes: the evaluator counts that, Choice::Room does not.
    const bool is_same_memory = lanes[candidate.device].memory == lanes[decision.device].memory;
    if (candidate.reason == Reason::no_memory && !is_same_memory) return;
    const Score& there = moved(decision.group, candidate.device);
    if (there.us == kCannot) return;
    if (there.over_bytes > now_.over_bytes) return refuse(candidate, there.over_bytes - now_.over_bytes);
    if (candidate.reason == Reason::no_memory) {
      candidate.reason = Reason::higher_cost;
      candidate.detail.clear();
    }
    candidate.added_us = there.us - now_.us;
    if (candidate.reason != Reason::higher_cost || there.us >= now_.us) return;
    const bool is_within = margin_ && there.us * (1 + *margin_) >= now_.us;
    candidate.reason = is_within ? Reason::within_margin : Reason::not_tried;
  }

  static void refuse(Candidate& candidate, double bytes) {
    if (candidate.reason != Reason::higher_cost) return;
    candidate.reason = Reason::no_memory;
    candidate.detail =
        fmt::format("values would need {} more than is free", in_units(static_cast<std::uint64_t>(bytes)));
  }

  PlanProblem problem_;
  Plan& plan_;
  const std::vector<std::uint32_t> device_of_node_;
  const Groups groups_;
  Evaluator evaluate_;
  std::vector<std::uint32_t> device_of_group_;
  Score now_;
  std::uint32_t preferred_ = kNone;
  std::optional<double> margin_;  // empty: any gain would have been taken
  std::map<std::pair<std::uint32_t, std::uint32_t>, Score> moved_;
};

}  // namespace

void explain(const PlanRequest& request, Plan& plan) { Explainer(request, plan).run(); }

}  // namespace shunt
