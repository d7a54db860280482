#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "plan/storage.h"

namespace shunt {
namespace {

std::unexpected<Error> broken(std::string message) { return fail(Code::internal, "plan: " + std::move(message)); }

// Computes which steps are certain to have ended before each step begins.
class StepOrder {
 public:
  explicit StepOrder(const Plan& plan) : words_((plan.steps.size() + 63) / 64), before_(plan.steps.size() * words_) {
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
      for (const std::uint32_t other : plan.steps[step].after) {
        for (std::size_t word = 0; word < words_; ++word)
          before_[step * words_ + word] |= before_[other * words_ + word];
        before_[step * words_ + other / 64] |= std::uint64_t{1} << other % 64;
      }
  }
  [[nodiscard]] bool has_ended(std::uint32_t step, std::uint32_t before) const {
    return (before_[before * words_ + step / 64] >> step % 64 & 1U) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> before_;  // a bit for each step, per step
};

// Checks everything that other checks, and whoever prints or runs the plan, use as an index.
Status check_indices(const Plan& plan, const Graph& graph) {
  const auto tensor = [&](TensorId id) { return id < graph.tensors().size(); };
  const auto device = [&](std::uint32_t index) { return index < plan.devices.size(); };
  if (plan.decisions.size() != plan.units.size())
    return broken(fmt::format("{} decisions for {} units", plan.decisions.size(), plan.units.size()));
  for (std::size_t index = 0; index < plan.units.size(); ++index) {
    const Unit& unit = plan.units[index];
    const Decision& decision = plan.decisions[index];
    if (unit.nodes.empty() || !tensor(unit.output) || !device(decision.device) ||
        !std::ranges::all_of(unit.nodes, [&](NodeId node) { return node < graph.nodes().size(); }) ||
        !std::ranges::all_of(unit.inputs, [&](TensorId input) { return input == kNone || tensor(input); }) ||
        !std::ranges::all_of(decision.candidates, device, &Candidate::device))
      return broken(fmt::format("unit {} names a node, tensor or device that is not there", index));
  }
  for (std::size_t index = 0; index < plan.residences.size(); ++index) {
    const Residence& residence = plan.residences[index];
    if (!tensor(residence.tensor) || graph.tensor(residence.tensor).base != residence.tensor ||
        !device(residence.device))
      return broken(fmt::format("copy {} names a tensor or device that is not there", index));
  }
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
    const Step& step = plan.steps[number];
    for (const std::uint32_t other : step.after)
      if (other >= number) return broken(fmt::format("step {} waits for the later step {}", number, other));
    const bool fits = step.kind == Step::Kind::transfer
                          ? tensor(step.transfer.tensor) && device(step.transfer.from) && device(step.transfer.to)
                          : device(step.device) && step.unit_count != 0 && step.first_unit < plan.units.size() &&
                                step.unit_count <= plan.units.size() - step.first_unit;
    if (!fits) return broken(fmt::format("step {} names a unit, tensor or device that is not there", number));
  }
  return {};
}

Status check_units(const Plan& plan, const Graph& graph) {
  // Fused ops may repeat what others compute inside.
  std::vector<bool> covered(graph.nodes().size(), false);
  std::vector<std::uint32_t> made(graph.nodes().size(), 0);
  for (const Unit& unit : plan.units) {
    for (const NodeId node : unit.nodes) covered[node] = true;
    ++made[unit.nodes.back()];
  }
  for (NodeId node = 0; node < covered.size(); ++node) {
    const bool runs = info_of(graph.nodes()[node].op).op_class != OpClass::layout;
    if (covered[node] != runs || made[node] > 1)
      return broken(fmt::format("node \"{}\" is computed {} times", graph.nodes()[node].name,
                                covered[node] ? std::max(made[node], 1U) : 0U));
  }
  for (std::size_t index = 0; index < plan.units.size(); ++index) {
    const Unit& unit = plan.units[index];
    const Unit root = unit_of(graph, unit.nodes.back());
    if (unit.is_fused() ? unit.output != root.output : unit != root)
      return broken(fmt::format("unit {} is not what node \"{}\" says", index, graph.nodes()[unit.nodes.back()].name));
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

// The place where a step or one of its units uses a copy of a tensor.
struct Access {
  std::uint32_t step = kNone;
  std::uint32_t position = 0;  // of the unit; 0 for transfers
  friend bool operator==(const Access&, const Access&) = default;
};

struct Use {
  Access first;   // writer; step kNone: none
  Access writer;  // the last one
  std::vector<Access> all;
  TensorId version = kNone;  // of a state, or of a copy of it
};

// Follows the plan's steps and notes who uses which copy.
class Dataflow {
 public:
  Dataflow(const Plan& plan, const Graph& graph)
      : plan_(plan),
        graph_(graph),
        order_(plan),
        uses_(plan.residences.size()),
        copies_(graph.tensors().size()),
        is_output_(graph.tensors().size(), false) {
    for (std::uint32_t index = 0; index < plan.residences.size(); ++index) {
      copies_[plan.residences[index].tensor].push_back(index);
      if (plan.residences[index].kind == StorageKind::state) uses_[index].version = plan.residences[index].tensor;
    }
    for (const TensorId output : graph.outputs()) is_output_[graph.tensor(output).base] = true;
  }

  Status follow() {
    for (std::uint32_t number = 0; number < plan_.steps.size(); ++number) {
      const Step& step = plan_.steps[number];
      if (step.kind == Step::Kind::transfer) {
        SHUNT_TRY(follow(step.transfer, {.step = number}));
        continue;
      }
      for (std::uint32_t position = step.first_unit; position < step.first_unit + step.unit_count; ++position)
        SHUNT_TRY(follow(plan_.units[position], step.device, {.step = number, .position = position}));
    }
    for (const TensorId output : graph_.outputs())
      if (copies_[graph_.tensor(output).base].empty())
        return broken(fmt::format("output \"{}\" lies nowhere", graph_.tensor(output).name));
    for (std::uint32_t index = 0; index < uses_.size(); ++index) {
      const Residence& residence = plan_.residences[index];
      if (residence.kind == StorageKind::state && uses_[index].version != newest(residence.tensor))
        return broken(fmt::format("\"{}\" does not return to {}", graph_.tensor(residence.tensor).name,
                                  plan_.devices[residence.device].id));
    }
    return {};
  }

  // Returns the residences in the order in which they are written, inputs first.
  [[nodiscard]] std::vector<std::uint32_t> by_writer() const {
    std::vector<std::uint32_t> order(uses_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t index) {
      const Access& first = uses_[index].first;
      return std::pair(first.step + 1, first.position);  // kNone + 1 is 0
    });
    return order;
  }

  // Returns whether all uses of `earlier` have ended before `later` is first written.
  [[nodiscard]] bool ends_before(std::size_t earlier, std::size_t later) const {
    if (uses_[later].first.step == kNone) return false;  // an input: written before the first step
    return !is_output_[plan_.residences[earlier].tensor] &&
           std::ranges::all_of(uses_[earlier].all,
                               [&](const Access& access) { return has_ended(access, uses_[later].first); });
  }

 private:
  [[nodiscard]] bool has_ended(const Access& one, const Access& other) const {
    return one.step == other.step ? one.position < other.position : order_.has_ended(one.step, other.step);
  }

  // Works as Plan::find().
  [[nodiscard]] std::uint32_t copy_on(TensorId base, std::uint32_t device) const {
    for (const std::uint32_t copy : copies_[base])
      if (plan_.devices[plan_.residences[copy].device].pool == plan_.devices[device].pool) return copy;
    return kNone;
  }

  Status follow(const Transfer& transfer, const Access& access) {
    const TensorInfo& tensor = graph_.tensor(transfer.tensor);
    if (transfer.bytes != tensor.operand.span_bytes())
      return broken(fmt::format("step {} copies {} bytes of \"{}\", which has {}", access.step, transfer.bytes,
                                tensor.name, tensor.operand.span_bytes()));
    if ((transfer.copied == Copied::state) != (tensor.operand.kind == TensorKind::state) ||
        (transfer.copied == Copied::weight && tensor.operand.kind != TensorKind::weight) ||
        transfer.expected_bytes > transfer.bytes)
      return broken(fmt::format("step {} copies \"{}\" as what it is not", access.step, tensor.name));
    const TensorId version = newest(transfer.tensor);
    SHUNT_TRY(read(version, transfer.from, access));
    return write(version, transfer.to, access);
  }

  // Returns the newest version of a state; a base that is none, or was not changed, itself.
  [[nodiscard]] TensorId newest(TensorId base) const {
    const auto version = versions_.find(base);
    return version == versions_.end() ? base : version->second;
  }

  Status follow(const Unit& unit, std::uint32_t device, const Access& access) {
    for (const TensorId input : unit.inputs)
      if (input != kNone) SHUNT_TRY(read(input, device, access));
    return write(unit.output, device, access);
  }

  [[nodiscard]] std::unexpected<Error> refuse(const Access& access, std::string_view does, TensorId tensor,
                                              std::string_view why) const {
    return broken(fmt::format("step {}, unit {} {} \"{}\" {}", access.step, access.position, does,
                              graph_.tensor(tensor).name, why));
  }

  Status read(TensorId tensor, std::uint32_t device, const Access& access) {
    const TensorId base = graph_.tensor(tensor).base;
    const std::uint32_t copy = copy_on(base, device);
    if (copy == kNone) return refuse(access, "reads", tensor, "where it does not lie");
    const Residence* residence = &plan_.residences[copy];
    Use& use = uses_[copy];
    const bool written = use.writer.step != kNone;
    if (written ? !has_ended(use.writer, access) : residence->kind == StorageKind::value)
      return refuse(access, "reads", tensor, "before it is there");
    if (is_state(base) && graph_.version_of(tensor) != use.version)
      return refuse(access, "reads", tensor, "when the state has another version");
    use.all.push_back(access);
    return {};
  }

  Status write(TensorId tensor, std::uint32_t device, const Access& access) {
    const TensorId base = graph_.tensor(tensor).base;
    const std::uint32_t copy = copy_on(base, device);
    if (copy == kNone) return refuse(access, "writes", tensor, "where it does not lie");
    const Residence* residence = &plan_.residences[copy];
    Use& use = uses_[copy];
    if (is_state(base)) {
      for (const Access& earlier : use.all)
        if (earlier != access && !has_ended(earlier, access))
          return refuse(access, "changes", tensor, "while it is used");
      versions_[base] = use.version = tensor;
    } else if (residence->kind != StorageKind::value || use.writer.step != kNone) {
      return refuse(access, "writes", tensor, "which has its content");
    }
    if (use.writer.step == kNone) use.first = access;
    use.writer = access;
    use.all.push_back(access);
    return {};
  }

  [[nodiscard]] bool is_state(TensorId base) const { return graph_.tensor(base).operand.kind == TensorKind::state; }

  const Plan& plan_;
  const Graph& graph_;
  StepOrder order_;
  std::vector<Use> uses_;                           // one per residence
  std::vector<std::vector<std::uint32_t>> copies_;  // the residences of each tensor, in order
  std::vector<bool> is_output_;                     // by base
  std::map<TensorId, TensorId> versions_;           // of each changed state, by its base
};

Status check_residence(const Residence& residence, const Plan::PlannedDevice& device, const TensorInfo& tensor) {
  // Devices other than the one that holds a weight or state get it as a value.
  const bool is_held = tensor.operand.kind == TensorKind::weight || tensor.operand.kind == TensorKind::state;
  const bool is_streamed = residence.kind == StorageKind::value && is_held;
  if ((residence.kind != storage_of(tensor.operand.kind) && !is_streamed) ||
      residence.bytes != tensor.operand.span_bytes())
    return broken(fmt::format("\"{}\" has {} bytes as {}, the graph wants {} as {}", tensor.name, residence.bytes,
                              name_of(residence.kind), tensor.operand.span_bytes(),
                              name_of(storage_of(tensor.operand.kind))));
  if (!in_arena(residence)) return {};
  if (residence.bytes > device.arena_bytes || residence.offset > device.arena_bytes - residence.bytes)
    return broken(fmt::format("\"{}\" runs past the arena of {} bytes", tensor.name, device.arena_bytes));
  if (device.alignment_bytes == 0 || residence.offset % device.alignment_bytes != 0)
    return broken(fmt::format("\"{}\" begins at byte {}, which is no multiple of {}", tensor.name, residence.offset,
                              device.alignment_bytes));
  return {};
}

// Errors: internal if something else lies where a copy stays.
Status check_copies_that_stay(const Plan& plan, const Graph& graph) {
  for (const Step& step : plan.steps) {
    if (!step.transfer.stays) continue;
    const std::string& name = graph.tensor(step.transfer.tensor).name;
    if (step.transfer.copied != Copied::weight) return broken(fmt::format("\"{}\" stays, but is no weight", name));
    const Residence& copy = *plan.find(step.transfer.tensor, step.transfer.to);
    for (const Residence& other : plan.residences)
      if (&other != &copy && other.device == copy.device && in_arena(other) &&
          other.offset < copy.offset + copy.bytes && copy.offset < other.offset + other.bytes)
        return broken(fmt::format("\"{}\" stays, but \"{}\" lies there, too", name, graph.tensor(other.tensor).name));
  }
  return {};
}

Status check_storage(const Plan& plan, const Graph& graph, const Dataflow& dataflow) {
  for (const Residence& residence : plan.residences)
    SHUNT_TRY(check_residence(residence, plan.devices[residence.device], graph.tensor(residence.tensor)));
  SHUNT_TRY(check_copies_that_stay(plan, graph));
  std::vector<Owners> arenas(plan.devices.size());
  for (const std::uint32_t later : dataflow.by_writer()) {
    const Residence& residence = plan.residences[later];
    if (!in_arena(residence)) continue;
    // The owner before was checked when the present one took the memory.
    std::optional<std::uint32_t> owner;
    arenas[residence.device].take(residence.offset, residence.offset + residence.bytes, later,
                                  [&](std::uint32_t earlier) {
                                    if (!dataflow.ends_before(earlier, later)) owner = earlier;
                                  });
    if (owner)
      return broken(fmt::format("\"{}\" and \"{}\" lie in the same memory at the same time",
                                graph.tensor(residence.tensor).name,
                                graph.tensor(plan.residences[*owner].tensor).name));
  }
  return {};
}

}  // namespace

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::only_candidate:
      return "only candidate";
    case Reason::others_are_full:
      return "the other devices lack memory";
    case Reason::lower_cost:
      return "lower predicted cost";
    case Reason::kept:
      return "others would gain less than the margin";
    case Reason::placed_by_hand:
      return "placed by hand";
    case Reason::preferred:
      return "preferred";
    case Reason::preferred_is_full:
      return "the preferred device lacks memory";
    case Reason::where_weights_are:
      return "its weights are already on this device";
    case Reason::higher_cost:
      return "higher predicted cost";
    case Reason::within_margin:
      return "would gain less than the margin";
    case Reason::not_tried:
      return "would be faster; the search did not try this";
    case Reason::not_preferred:
      return "another device is preferred";
    case Reason::weights_elsewhere:
      return "its weights are on another device";
    case Reason::group_cannot:
      return "other ops of its group cannot run here";
    case Reason::lacks_op:
      return "lacks the op";
    case Reason::too_large:
      return "an operand is too large";
    case Reason::no_memory:
      return "not enough memory";
    case Reason::state_elsewhere:
      return "its state lives in another memory";
    case Reason::not_named:
      return "another device was named";
    case Reason::quarantined:
      return "quarantined after a failure";
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
  SHUNT_TRY(check_indices(plan, graph));
  SHUNT_TRY(check_units(plan, graph));
  Dataflow dataflow(plan, graph);
  SHUNT_TRY(dataflow.follow());
  return check_storage(plan, graph, dataflow);
}

}  // namespace shunt
