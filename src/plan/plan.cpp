#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/storage.h"

namespace shunt {
namespace {

std::unexpected<Error> broken(std::string message) { return fail(Code::internal, "plan: " + std::move(message)); }

// Which steps are certain to have ended before each step begins.
std::vector<std::vector<bool>> steps_before(const Plan& plan) {
  std::vector<std::vector<bool>> before(plan.steps.size(), std::vector<bool>(plan.steps.size(), false));
  for (std::size_t step = 0; step < plan.steps.size(); ++step)
    for (const std::uint32_t other : plan.steps[step].after) {
      before[step][other] = true;
      for (std::size_t i = 0; i < other; ++i)
        if (before[other][i]) before[step][i] = true;
    }
  return before;
}

Status check_units(const Plan& plan, const Graph& graph) {
  std::vector<std::uint32_t> covered(graph.nodes().size(), 0);
  for (const Unit& unit : plan.units)
    for (const NodeId node : unit.nodes) ++covered[node];
  for (NodeId node = 0; node < covered.size(); ++node) {
    const bool runs = info_of(graph.nodes()[node].op).op_class != OpClass::layout;
    if (covered[node] != (runs ? 1U : 0U))
      return broken(fmt::format("node \"{}\" is computed {} times", graph.nodes()[node].name, covered[node]));
  }
  std::uint32_t next = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::compute) continue;
    if (step.first_unit != next) return broken(fmt::format("unit {} is in no step", next));
    next += step.unit_count;
    for (std::uint32_t unit = step.first_unit; unit < next; ++unit)
      if (plan.decisions[unit].device != step.device)
        return broken(fmt::format("unit {} runs on another device", unit));
  }
  if (next != plan.units.size()) return broken(fmt::format("unit {} is in no step", next));
  return {};
}

// Every value a unit reads was written before, by a step that is certain to have ended.
Status check_dataflow(const Plan& plan, const Graph& graph) {
  const auto before = steps_before(plan);
  std::vector<std::uint32_t> writer(plan.residences.size(), kNone);
  const auto index_of = [&](TensorId base, std::uint32_t device) {
    const Residence* residence = plan.find(base, device);
    return residence == nullptr ? kNone : static_cast<std::uint32_t>(residence - plan.residences.data());
  };
  const auto readable = [&](std::uint32_t residence, std::uint32_t step) {
    if (residence == kNone) return false;
    if (plan.residences[residence].kind != StorageKind::value) return true;
    const std::uint32_t by = writer[residence];
    return by != kNone && (by == step || before[step][by]);
  };
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
    const Step& step = plan.steps[number];
    for (const std::uint32_t other : step.after)
      if (other >= number) return broken(fmt::format("step {} waits for the later step {}", number, other));
    if (step.kind == Step::Kind::transfer) {
      if (!readable(index_of(step.transfer.tensor, step.transfer.from), number))
        return broken(
            fmt::format("step {} copies \"{}\" before it is there", number, graph.tensor(step.transfer.tensor).name));
      writer[index_of(step.transfer.tensor, step.transfer.to)] = number;
      continue;
    }
    for (std::uint32_t position = step.first_unit; position < step.first_unit + step.unit_count; ++position) {
      for (const TensorId input : plan.units[position].inputs)
        if (input != kNone && !readable(index_of(graph.tensor(input).base, step.device), number))
          return broken(fmt::format("unit {} reads \"{}\" before it is there", position, graph.tensor(input).name));
      const std::uint32_t output = index_of(graph.tensor(plan.units[position].output).base, step.device);
      if (output == kNone) return broken(fmt::format("unit {} writes to no memory", position));
      writer[output] = number;
    }
  }
  return {};
}

Status check_storage(const Plan& plan, const Graph& graph) {
  for (std::size_t i = 0; i < plan.residences.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (share_memory(plan.residences[i], plan.residences[j]) && live_together(plan.residences[i], plan.residences[j]))
        return broken(fmt::format("\"{}\" and \"{}\" lie in the same memory",
                                  graph.tensor(plan.residences[i].tensor).name,
                                  graph.tensor(plan.residences[j].tensor).name));
  for (const Residence& residence : plan.residences)
    if (residence.kind == StorageKind::value &&
        residence.offset + residence.bytes > plan.devices[residence.device].arena_bytes)
      return broken(fmt::format("\"{}\" runs past the arena", graph.tensor(residence.tensor).name));
  return {};
}

}  // namespace

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::only_candidate:
      return "only candidate";
    case Reason::lower_cost:
      return "lower predicted cost";
    case Reason::placed_by_hand:
      return "placed by hand";
    case Reason::higher_cost:
      return "higher predicted cost";
    case Reason::lacks_op:
      return "lacks the op";
    case Reason::too_large:
      return "an operand is too large";
    case Reason::state_elsewhere:
      return "its state lives in another memory";
    case Reason::not_named:
      return "another device was named";
  }
  return "unknown";
}

std::string_view name_of(StorageKind kind) {
  switch (kind) {
    case StorageKind::value:
      return "value";
    case StorageKind::input:
      return "input";
    case StorageKind::weight:
      return "weight";
    case StorageKind::state:
      return "state";
  }
  return "unknown";
}

const Residence* Plan::find(TensorId tensor, std::uint32_t device) const {
  for (const Residence& residence : residences)
    if (residence.tensor == tensor && devices[residence.device].pool == devices[device].pool) return &residence;
  return nullptr;
}

Status check(const Plan& plan, const Graph& graph) {
  SHUNT_TRY(check_units(plan, graph));
  SHUNT_TRY(check_dataflow(plan, graph));
  return check_storage(plan, graph);
}

}  // namespace shunt
