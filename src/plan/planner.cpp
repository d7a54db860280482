#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "base/units.h"
#include "ops/op.h"
#include "plan/placement.h"
#include "plan/problem.h"
#include "plan/schedule.h"

namespace shunt {
namespace {

constexpr int kBudgetAttempts = 8;  // with ever smaller budgets, zero in the last
constexpr int kWindowAttempts = 7;  // in each of them, with less room for weights on their way
// A plan with less room is taken at once if it takes at most so many times as long as one with more.
constexpr double kNotSlower = 1.01;
// A plan within given arenas takes at most so many times as long as the fastest placement would.
constexpr double kTooSlow = 2;

// A memory with a budget, and what the plan uses of it.
struct Bounded {
  std::string_view memory;  // memory_of() of its devices
  std::uint64_t budget = kNoBudget;
  MemoryUse use;
  bool has_arenas = false;        // some are given
  std::uint64_t past_arenas = 0;  // beyond their sizes

  // Returns the bytes that are too many.
  [[nodiscard]] std::uint64_t excess() const {
    return std::max(past_arenas, use.total() - std::min(use.total(), budget));
  }
};

// Returns the first memory of which a plan takes more than the least budget of its devices, and what it takes.
std::optional<Bounded> over_budget(const Plan& plan, const PlanRequest& request) {
  std::vector<Bounded> memories;
  std::set<std::string_view> counted;
  for (std::size_t device = 0; device < request.budget_bytes.size(); ++device) {
    const DeviceInfo& info = request.devices[device]->info();
    auto its = std::ranges::find(memories, memory_of(info), &Bounded::memory);
    if (its == memories.end()) its = memories.insert(its, {.memory = memory_of(info)});
    its->budget = std::min(its->budget, request.budget_bytes[device]);
    const std::uint64_t arena = plan.devices[device].arena_bytes;
    if (!request.arena_bytes.empty() && request.arena_bytes[device] != 0) {
      its->has_arenas = true;
      its->past_arenas = std::max(its->past_arenas, arena - request.arena_bytes[device]);
    }
    if (!counted.insert(info.memory_pool).second) continue;
    const auto use = std::ranges::find(plan.memory, info.memory_pool, &MemoryUse::pool);
    its->use.pool += (its->use.pool.empty() ? "" : ", ") + use->pool;
    its->use.weight_bytes += use->weight_bytes;
    its->use.state_bytes += use->state_bytes;
    its->use.value_bytes += use->value_bytes;
    its->use.scratch_bytes += use->scratch_bytes;
  }
  const auto over = std::ranges::find_if(memories, [](const Bounded& memory) { return memory.excess() != 0; });
  return over == memories.end() ? std::nullopt : std::optional(*over);
}

// Errors: unsupported for the first op that does not run on the preferred device.
Status check_preference(const Plan& plan, const Graph& graph, std::uint32_t preferred) {
  const auto elsewhere =
      std::ranges::find_if(plan.decisions, [&](const Decision& decision) { return decision.device != preferred; });
  if (elsewhere == plan.decisions.end()) return {};
  const Unit& unit = plan.units[static_cast<std::size_t>(elsewhere - plan.decisions.begin())];
  const Candidate& refused = elsewhere->candidates[preferred];
  return fail(Code::unsupported,
              fmt::format("\"{}\" cannot run on {} ({}{}{}), and strict allows no fallback",
                          graph.nodes()[unit.nodes.back()].name, plan.devices[preferred].id, name_of(refused.reason),
                          refused.detail.empty() ? "" : ": ", refused.detail));
}

std::unexpected<Error> too_little(const Bounded& memory) {
  const MemoryUse& use = memory.use;
  return fail(Code::out_of_memory,
              fmt::format("memory \"{}\" has a budget of {}, but the smallest plan needs {}: {} of weights, {} of "
                          "state, {} of values and {} of scratch; raise the budget, or name more devices",
                          use.pool, in_units(memory.budget), in_units(use.total()), in_units(use.weight_bytes),
                          in_units(use.state_bytes), in_units(use.value_bytes), in_units(use.scratch_bytes)));
}

// Errors: invalid for lists of the wrong length.
Status check_numbers(const PlanRequest& request) {
  const std::size_t devices = request.devices.size();
  if (devices == 0) return fail(Code::invalid, "no devices to plan for");
  if (!request.budget_bytes.empty() && request.budget_bytes.size() != devices)
    return fail(Code::invalid,
                fmt::format("{} budgets are given for {} devices", request.budget_bytes.size(), devices));
  if (const auto* search = std::get_if<Search>(&request.where);
      search != nullptr && !search->homes.empty() && search->homes.size() != request.graph->tensors().size())
    return fail(Code::invalid, fmt::format("homes are given for {} tensors, but the graph has {}", search->homes.size(),
                                           request.graph->tensors().size()));
  const std::size_t tensors = request.graph->tensors().size();
  if (!request.lent_from.empty() && request.lent_from.size() != tensors)
    return fail(Code::invalid, fmt::format("lent weights are given for {} tensors, but the graph has {}",
                                           request.lent_from.size(), tensors));
  for (const std::uint32_t device : request.lent_from)
    if (device != kNone && device >= devices)
      return fail(Code::invalid, fmt::format("a lent weight comes from device {}, but there are {}", device, devices));
  if (!request.arena_bytes.empty() && request.arena_bytes.size() != devices)
    return fail(Code::invalid,
                fmt::format("sizes of {} arenas are given for {} devices", request.arena_bytes.size(), devices));
  const std::vector<std::uint32_t>* const places = given_places(request.where);
  if (places == nullptr) return {};
  if (places->size() != request.graph->nodes().size())
    return fail(Code::invalid, fmt::format("a placement by hand names {} nodes, but the graph has {}", places->size(),
                                           request.graph->nodes().size()));
  for (const std::uint32_t index : *places)
    if (index >= devices)
      return fail(Code::invalid, fmt::format("a placement by hand names device {}, but there are {}", index, devices));
  return {};
}

struct Scheduled {
  std::optional<Plan> plan;     // if one is within the request's budgets
  std::optional<Bounded> over;  // a memory whose budget the first schedule exceeds
  double us = 0;                // that the first schedule takes
};

// Schedules a placement within the request's budgets, perhaps with less room for weights on their way: as much as the
// budgets leave.
Scheduled schedule_in_windows(const PlanRequest& request, PlanProblem& problem, const Placement& placement) {
  Scheduled scheduled;
  std::vector<std::uint64_t> windows;
  for (const Lane& lane : problem.lanes) windows.push_back(lane.window_bytes);
  std::vector<std::uint64_t> too_large;
  std::vector<std::uint64_t> fitting;
  for (int attempt = 0; attempt < kWindowAttempts; ++attempt) {
    Plan plan = schedule(problem, placement);
    const std::optional<Bounded> over = over_budget(plan, request);
    if (attempt == 0) scheduled = {.plan = std::nullopt, .over = over, .us = plan.predicted_us};
    (over ? too_large : fitting) = windows;
    if (!over && (!scheduled.plan || plan.predicted_us < scheduled.plan->predicted_us))
      scheduled.plan = std::move(plan);
    if (problem.homes.empty() || (scheduled.plan && scheduled.plan->predicted_us <= kNotSlower * scheduled.us)) break;
    for (std::size_t device = 0; device < windows.size(); ++device) {
      if (!fitting.empty())
        windows[device] = std::midpoint(fitting[device], too_large[device]);
      else if (memory_of(request.devices[device]->info()) == over->memory)
        windows[device] -= std::min(windows[device], over->excess());
      problem.set_window(device, windows[device]);
    }
    if (windows == too_large || windows == fitting) break;
  }
  return scheduled;
}

// Plans again until the real use of each memory, scratch and arenas included, is within the request's budgets. Arenas
// that are given may be too small for a graph, and other placements hardly take less scratch memory beside them: what
// takes more than kTooSlow times as long as the fastest placement is no plan then. Errors: as make_plan().
Result<Plan> plan_within_budgets(const PlanRequest& request, PlanProblem& problem, const Where& where) {
  const bool has_arenas = !request.arena_bytes.empty();
  std::optional<Plan> best;
  std::optional<Bounded> exceeded;  // the last memory that was
  double first_us = 0;
  for (int attempt = 1;; ++attempt) {
    const Result<Placement> placement = place(problem, where);
    if (!placement) return best ? Result<Plan>(*std::move(best)) : std::unexpected(placement.error());
    auto [plan, over, us] = schedule_in_windows(request, problem, *placement);
    if (attempt == 1) first_us = us;
    if (over) exceeded = over;
    const auto is_too_slow = [&](double its_us) { return has_arenas && its_us > kTooSlow * first_us; };
    if (plan && !is_too_slow(plan->predicted_us) && (!best || plan->predicted_us < best->predicted_us))
      best = std::move(plan);
    if (best && (!over || best->predicted_us <= kNotSlower * first_us)) return *std::move(best);
    const bool is_hopeless = is_too_slow(us) || (over->has_arenas && over->past_arenas == 0);
    if (attempt == kBudgetAttempts || given_places(where) != nullptr || is_hopeless)
      return best ? Result<Plan>(*std::move(best)) : too_little(*exceeded);
    std::vector<std::uint64_t> budgets = problem.budget_bytes;
    for (std::size_t device = 0; device < budgets.size(); ++device) {
      if (memory_of(request.devices[device]->info()) != over->memory) continue;
      const std::uint64_t less = over->excess() << static_cast<unsigned>(attempt - 1);
      budgets[device] = attempt + 1 == kBudgetAttempts ? 0 : budgets[device] - std::min(budgets[device], less);
    }
    problem.set_budgets(std::move(budgets));
  }
}

}  // namespace

double margin_or_default(std::optional<double> margin, bool is_measured) {
  return margin.value_or(is_measured ? 0.05 : 1.0);
}

std::vector<std::uint32_t> devices_of_nodes(const Plan& plan, const Graph& graph) {
  std::vector<std::uint32_t> device_of_node(graph.nodes().size(), 0);
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit)
    for (const NodeId node : plan.units[unit].nodes) device_of_node[node] = plan.decisions[unit].device;
  for (NodeId node = 0; node < graph.nodes().size(); ++node) {  // views are where their sources are
    const Node& each = graph.nodes()[node];
    if (info_of(each.op).op_class != OpClass::layout) continue;
    for (const TensorId input : each.inputs)
      if (input != kNone && graph.tensor(input).producer != kNone)
        device_of_node[node] = device_of_node[graph.tensor(input).producer];
  }
  return device_of_node;
}

std::vector<std::uint32_t> homes_of(const Plan& plan, const Graph& graph) {
  std::vector<std::uint32_t> homes(graph.tensors().size(), kNone);
  for (const Residence& residence : plan.residences)
    if (residence.kind == StorageKind::weight || residence.kind == StorageKind::state)
      homes[residence.tensor] = residence.device;
  return homes;
}

Result<Plan> make_plan(const PlanRequest& request) {
  SHUNT_TRY(check_numbers(request));
  PlanProblem problem(request);
  SHUNT_TRY_ASSIGN(Plan plan, plan_within_budgets(request, problem, request.where));
  plan.quarantined.assign(request.quarantined.begin(), request.quarantined.end());
  plan.best_us = plan.predicted_us;
  if (const auto* search = std::get_if<Search>(&request.where);
      search != nullptr && search->strict && search->preferred != kNone)
    SHUNT_TRY(check_preference(plan, problem.graph, search->preferred));
  if (const auto* given = std::get_if<GivenPlaces>(&request.where); given != nullptr && given->compare)
    if (const auto best = plan_within_budgets(request, problem, Search{.margin = 0.0}))
      plan.best_us = std::min(best->predicted_us, plan.predicted_us);
  return plan;
}

}  // namespace shunt
