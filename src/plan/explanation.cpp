#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "ops/units.h"
#include "plan/groups.h"
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
    if (search != nullptr && search->preferred == kNone)
      margin_ = margin_or_default(search->margin, problem_.is_measured());
  }

  void run() {
    for (std::size_t unit = 0; unit < plan_.units.size(); ++unit) {
      Decision& decision = plan_.decisions[unit];
      decision.candidates[decision.device].added_us = 0;
      for (Candidate& candidate : decision.candidates)
        if (candidate.device != decision.device && candidate.compute_us > 0 && candidate.reason != Reason::no_memory)
          compare(groups_.of_node[plan_.units[unit].nodes.back()], candidate);
    }
  }

 private:
  // Of the placement with one group elsewhere.
  const Score& moved(std::uint32_t group, std::uint32_t device) {
    const auto [known, is_new] = moved_.try_emplace({group, device});
    if (!is_new) return known->second;
    const std::uint32_t before = std::exchange(device_of_group_[group], device);
    known->second = evaluate_(device_of_group_);
    device_of_group_[group] = before;
    return known->second;
  }

  void compare(std::uint32_t group, Candidate& candidate) {
    const Score& there = moved(group, candidate.device);
    if (there.us == kCannot) return;
    if (there.over_bytes > now_.over_bytes) {
      if (candidate.reason != Reason::higher_cost) return;
      candidate.reason = Reason::no_memory;
      candidate.detail = fmt::format("values would need {} more than there are",
                                     in_units(static_cast<std::uint64_t>(there.over_bytes - now_.over_bytes)));
      return;
    }
    candidate.added_us = there.us - now_.us;
    if (candidate.reason != Reason::higher_cost || there.us >= now_.us || !margin_) return;
    candidate.reason = there.us * (1 + *margin_) < now_.us ? Reason::not_tried : Reason::within_margin;
  }

  PlanProblem problem_;
  Plan& plan_;
  const std::vector<std::uint32_t> device_of_node_;
  const Groups groups_;
  Evaluator evaluate_;
  std::vector<std::uint32_t> device_of_group_;
  Score now_;
  std::optional<double> margin_;  // nothing: it was not searched for what is fastest
  std::map<std::pair<std::uint32_t, std::uint32_t>, Score> moved_;
};

}  // namespace

void explain(const PlanRequest& request, Plan& plan) { Explainer(request, plan).run(); }

}  // namespace shunt
