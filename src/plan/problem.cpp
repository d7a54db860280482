#include "plan/problem.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace shunt {
namespace {

std::span<const std::uint32_t> homes_in(const PlanRequest& request) {
  const auto* search = std::get_if<Search>(&request.where);
  return search == nullptr ? std::span<const std::uint32_t>() : search->homes;
}

// Starting a copy takes longer than moving so few bytes: those of norms, for example.
constexpr std::uint64_t kSmallWeightBytes = std::uint64_t{64} << 10U;

// Values in arenas take somewhat more than they have bytes.
constexpr double kArenaShare = 1.25;

// Returns the most bytes that values and inputs have at once, if nodes run in order.
double most_value_bytes(const Graph& graph) {
  std::vector<double> change(graph.nodes().size() + 1, 0);  // before each node
  std::vector<NodeId> last(graph.tensors().size(), kNone);
  double bytes = 0;
  const auto in_arena = [&](TensorId tensor) {
    const TensorKind kind = graph.tensor(tensor).operand.kind;
    return kind == TensorKind::value || kind == TensorKind::input;
  };
  for (NodeId node = 0; node < graph.nodes().size(); ++node)
    for (const TensorId input : graph.nodes()[node].inputs)
      if (input != kNone) last[graph.tensor(input).base] = node;
  for (TensorId tensor = 0; tensor < graph.tensors().size(); ++tensor) {
    const TensorInfo& info = graph.tensor(tensor);
    if (info.base != tensor || !in_arena(tensor)) continue;
    const auto its = static_cast<double>(info.operand.span_bytes());
    change[info.producer == kNone ? 0 : info.producer] += its;
    if (info.producer != kNone && last[tensor] != kNone) change[last[tensor] + 1] -= its;
  }
  double most = 0;
  for (const double each : change) most = std::max(most, bytes += each);
  return most;
}

bool has_costs(const PlanRequest& request) { return request.costs.size() == request.devices.size(); }

}  // namespace

PlanProblem::PlanProblem(const PlanRequest& request)
    : graph(*request.graph),
      devices(request.devices),
      fuse(request.fuse),
      priors(has_costs(request) ? std::vector<DeviceCost>() : prior_costs(request.devices)),
      costs(has_costs(request) ? request.costs : priors),
      own_cache(request.cost_cache == nullptr || !has_costs(request)
                    ? std::optional<CostCache>(std::in_place, devices, costs)
                    : std::nullopt),
      cost_cache(own_cache ? &*own_cache : request.cost_cache),
      homes(homes_in(request)),
      lent_from(request.lent_from),
      arena_bytes(request.arena_bytes),
      state_travels(request.state_travels) {
  set_budgets(request.budget_bytes);
}

void PlanProblem::set_budgets(std::vector<std::uint64_t> bytes) {
  budget_bytes = std::move(bytes);
  lanes = lanes_of(devices, costs);
  if (homes.empty() || budget_bytes.empty()) return;
  std::vector<std::uint64_t> held(memories_of(lanes), 0);
  for (TensorId tensor = 0; tensor < homes.size(); ++tensor)
    if (homes[tensor] != kNone) held[lanes[homes[tensor]].memory] += graph.tensor(tensor).operand.span_bytes();
  // Values are there, too.
  const auto values = static_cast<std::uint64_t>(kArenaShare * most_value_bytes(graph));
  for (std::size_t device = 0; device < lanes.size(); ++device) {
    const std::uint64_t left = budget_bytes[device] - std::min(budget_bytes[device], held[lanes[device].memory]);
    const std::uint64_t others = std::min(left / 2, values + devices[device]->weight_copy_bytes());
    set_window(device, std::min(lanes[device].window_bytes, left - others));
  }
}

void PlanProblem::set_window(std::size_t device, std::uint64_t bytes) {
  lanes[device].window_bytes = bytes;
  lanes[device].batch_bytes = std::min(Lane().batch_bytes, bytes / 4);
}

bool is_small_weight(const Operand& operand) {
  return operand.kind == TensorKind::weight && operand.span_bytes() <= kSmallWeightBytes;
}

bool PlanProblem::may_travel(TensorId base) const {
  const Operand& operand = graph.tensor(base).operand;
  const std::uint32_t home = home_of(base);
  if (home == kNone || devices[home]->info().memory_pool != kHostPool) return false;
  return operand.kind == TensorKind::state ? state_travels
                                           : operand.kind == TensorKind::weight && !is_small_weight(operand);
}

bool PlanProblem::must_stay(TensorId base) const {
  return home_of(base) != kNone && !is_small_weight(graph.tensor(base).operand) && !may_travel(base);
}

TensorId PlanProblem::too_large_for(const Unit& unit, std::uint32_t device) const {
  const std::uint64_t most = devices[device]->info().largest_binding_bytes;
  const auto too_large = [&](TensorId id) { return id != kNone && graph.tensor(id).operand.span_bytes() > most; };
  const auto input = std::ranges::find_if(unit.inputs, too_large);
  if (input != unit.inputs.end()) return *input;
  return too_large(unit.output) ? unit.output : kNone;
}

std::uint32_t PlanProblem::measured_twin_of(std::uint32_t device) const {
  const DeviceInfo& its = devices[device]->info();
  for (std::uint32_t other = 0; other < devices.size() && !costs[device].is_measured(); ++other) {
    const DeviceInfo& twin = devices[other]->info();
    if (costs[other].is_measured() && twin.compute_resource == its.compute_resource &&
        twin.memory_pool == its.memory_pool && its.prior.flops_per_s <= twin.prior.flops_per_s &&
        its.prior.bytes_per_s <= twin.prior.bytes_per_s)
      return other;
  }
  return kNone;
}

bool PlanProblem::is_measured() const {
  for (std::uint32_t device = 0; device < devices.size(); ++device)
    if (!costs[device].is_measured() && measured_twin_of(device) == kNone) return false;
  return true;
}

}  // namespace shunt
