#include "plan/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "base/units.h"
#include "plan/simulation.h"
#include "plan/storage.h"

namespace shunt {
namespace {

// If there is room for so many, the copy of a state keeps its memory for some units after its stretch, which need not
// wait for its way home.
constexpr std::uint64_t kCopiesOnTheWay = 4;
constexpr std::uint32_t kUnitsOnTheWay = 16;
// Devices with long steps, of at least as many units, compute them while values come from each other. So many short
// ones may be between.
constexpr int kStepsOnTheWay = 4;
// The share of a state that is expected to be in use, as attention is priced.
constexpr std::uint64_t kStateInUse = 2;

// Turns a placement into steps, copies and lifetimes.
class Scheduler {
 public:
  Scheduler(const PlanProblem& problem, Placement placement) : problem_(problem), graph_(problem.graph) {
    plan_.units = std::move(placement.units);
    plan_.decisions = std::move(placement.decisions);
    plan_.bound_us = placement.bound_us;
    for (std::size_t index = 0; index < problem.devices.size(); ++index) {
      const DeviceInfo& info = problem.devices[index]->info();
      plan_.devices.push_back({.id = info.id,
                               .pool = info.memory_pool,
                               .resource = info.compute_resource,
                               .alignment_bytes = info.alignment_bytes,
                               .correction = problem.costs[index].correction()});
    }
    plan_.is_measured = problem.is_measured();
    last_step_of_device_.assign(plan_.devices.size(), kNone);
    copies_.resize(graph_.tensors().size());
    windows_.resize(plan_.devices.size());
    step_of_unit_.assign(plan_.units.size(), kNone);
    last_use_.assign(graph_.tensors().size(), kNone);
    written_.assign(graph_.tensors().size(), 0);
    for (std::uint32_t position = 0; position < plan_.units.size(); ++position) note_uses(position);
  }

  Plan schedule() {
    const auto units = static_cast<std::uint32_t>(plan_.units.size());
    for (std::uint32_t begin = 0; begin < units;) {
      const std::uint32_t end = end_of_stretch(begin);
      for (std::uint32_t position = begin; position < end; ++position) stream_from_homes(position, begin);
      for (std::uint32_t position = begin; position < end; ++position) bring_values(position, begin);
      for (std::uint32_t position = begin; position < end; ++position) add_unit(position);
      for (std::uint32_t position = begin; position < end; ++position) return_state(position, end);
      begin = end;
    }
    keep_inputs_and_outputs();
    std::vector<std::uint64_t> alignment;
    for (const Plan::PlannedDevice& device : plan_.devices) alignment.push_back(device.alignment_bytes);
    const std::vector<std::uint64_t> arenas = assign_offsets(plan_.residences, alignment);
    for (std::size_t index = 0; index < arenas.size(); ++index)
      plan_.devices[index].arena_bytes =
          std::max(arenas[index], problem_.arena_bytes.empty() ? 0 : problem_.arena_bytes[index]);
    const double counted_us = plan_.predicted_us = simulate(plan_, problem_.lanes);
    if (plan_.steps.size() > 1) {
      wait_for_users();
      plan_.predicted_us = simulate(plan_, problem_.lanes);
    }
    plan_.memory_wait_us = plan_.predicted_us - counted_us;
    sum_memory();
    return std::move(plan_);
  }

 private:
  struct Uses {
    std::uint32_t first = kNone;   // the step that writes it first
    std::uint32_t writer = kNone;  // and last
    std::vector<std::uint32_t> readers;
  };

  [[nodiscard]] std::uint32_t index_of(TensorId base, std::uint32_t device) const {
    for (const std::uint32_t index : copies_[base])
      if (plan_.devices[plan_.residences[index].device].pool == plan_.devices[device].pool) return index;
    return kNone;
  }

  std::uint32_t add_residence(TensorId base, std::uint32_t device, std::uint32_t position) {
    return add_residence(base, device, position, storage_of(graph_.tensor(base).operand.kind));
  }
  std::uint32_t add_residence(TensorId base, std::uint32_t device, std::uint32_t position, StorageKind kind) {
    const Operand& operand = graph_.tensor(base).operand;
    plan_.residences.push_back({.tensor = base,
                                .device = device,
                                .kind = kind,
                                .bytes = operand.span_bytes(),
                                .first = kind == StorageKind::input ? 0 : position,
                                .last = position});
    uses_.emplace_back();
    copies_[base].push_back(static_cast<std::uint32_t>(plan_.residences.size() - 1));
    return copies_[base].back();
  }

  static void after(Step& step, std::uint32_t other) {
    if (other != kNone && std::ranges::find(step.after, other) == step.after.end()) step.after.push_back(other);
  }

  // Returns the device that has a weight or state between runs.
  [[nodiscard]] std::uint32_t home_of(TensorId base) const {
    const std::uint32_t lender = problem_.lender_of(base);
    return lender == kNone ? problem_.home_of(base) : lender;
  }

  // A unit writes as many elements to a state as its largest value has.
  void note_uses(std::uint32_t position) {
    const Unit& unit = plan_.units[position];
    std::uint64_t most = 0;
    for (const TensorId input : unit.inputs) {
      if (input == kNone) continue;
      last_use_[graph_.tensor(input).base] = position;
      const Operand& operand = graph_.tensor(input).operand;
      if (operand.kind == TensorKind::value) most = std::max(most, operand.shape.elements());
    }
    written_[graph_.tensor(unit.output).base] += most;
  }

  // Returns whether the copy of a weight stays where it was copied to until others use its memory.
  [[nodiscard]] bool is_lent(TensorId base) const { return problem_.lender_of(base) != kNone; }

  // Returns the device that a weight or state is copied from for `device`; kNone: it needs no such copy, or has one.
  [[nodiscard]] std::uint32_t streamed_from(TensorId base, std::uint32_t device) const {
    const std::uint32_t home = home_of(base);
    const bool travels = problem_.may_travel(base) || (is_lent(base) && !is_small_weight(graph_.tensor(base).operand));
    if (!travels || plan_.devices[home].pool == plan_.devices[device].pool) return kNone;
    return index_of(base, device) == kNone ? home : kNone;
  }

  // Returns whether a unit on `device` reads a value that is elsewhere.
  [[nodiscard]] bool is_value_elsewhere(TensorId base, std::uint32_t device) const {
    return graph_.tensor(base).operand.kind == TensorKind::value && !copies_[base].empty() &&
           index_of(base, device) == kNone;
  }

  // Returns the end of a stretch of units that begin together: neighbours on one device. Only the first may wait for
  // values from other devices, apart from short ones that are ready with its own. Their streamed weights fit one batch.
  [[nodiscard]] std::uint32_t end_of_stretch(std::uint32_t begin) const {
    const std::uint32_t device = plan_.decisions[begin].device;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> awaited;  // the steps that the first one waits for
    std::vector<TensorId> streamed;
    for (std::uint32_t position = begin; position < plan_.units.size(); ++position) {
      bool needs_value = plan_.decisions[position].device != device;
      for (const TensorId input : plan_.units[position].inputs) {
        if (input == kNone) continue;
        const TensorId base = graph_.tensor(input).base;
        if (!is_lent(base) && streamed_from(base, device) != kNone &&
            std::ranges::find(streamed, base) == streamed.end()) {
          bytes += graph_.tensor(base).operand.span_bytes();
          streamed.push_back(base);
        }
        if (!is_value_elsewhere(base, device)) continue;
        const std::uint32_t writer = uses_[copies_[base].front()].writer;
        if (position == begin) awaited.push_back(writer);
        needs_value =
            needs_value || !is_brief_copy(base, device) || std::ranges::find(awaited, writer) == awaited.end();
      }
      if (position != begin && (needs_value || bytes > problem_.lanes[device].batch_bytes)) return position;
    }
    return static_cast<std::uint32_t>(plan_.units.size());
  }

  [[nodiscard]] bool is_brief_copy(TensorId base, std::uint32_t device) const {
    const Residence& from = plan_.residences[copies_[base].front()];
    return is_brief(problem_.lanes[from.device], problem_.lanes[device], from.bytes);
  }

  // Copies the values of a unit that are elsewhere, before its stretch begins.
  void bring_values(std::uint32_t position, std::uint32_t begin) {
    const std::uint32_t device = plan_.decisions[position].device;
    for (const TensorId input : plan_.units[position].inputs)
      if (input != kNone && is_value_elsewhere(graph_.tensor(input).base, device))
        bring(graph_.tensor(input).base, device, begin);
  }

  // Copies the weights and state of a unit that are elsewhere, as soon as there is room for them. The stretch begins at
  // `begin`.
  void stream_from_homes(std::uint32_t position, std::uint32_t begin) {
    const std::uint32_t device = plan_.decisions[position].device;
    for (const TensorId input : plan_.units[position].inputs) {
      if (input == kNone) continue;
      const TensorId base = graph_.tensor(input).base;
      const std::uint32_t home = streamed_from(base, device);
      if (home == kNone) continue;
      if (index_of(base, home) == kNone) add_residence(base, home, position);
      const std::uint32_t copy = add_residence(base, device, position, StorageKind::value);
      const bool stays = is_lent(base);
      const std::uint64_t bytes = graph_.tensor(base).operand.span_bytes();
      const bool is_state = graph_.tensor(base).operand.kind == TensorKind::state;
      const std::uint32_t ended =
          stays ? kNone : windows_[device].add(position, bytes, problem_.lanes[device].window_bytes);
      // Those of the stretch itself are there together.
      const std::uint32_t first = ended == kNone ? 0 : std::min(ended + 1, begin);
      plan_.residences[copy].first = first;
      if (stays) plan_.residences[copy].last = static_cast<std::uint32_t>(plan_.units.size());
      set_writer(copy, static_cast<std::uint32_t>(plan_.steps.size()));
      plan_.steps.push_back({.kind = Step::Kind::transfer,
                             .transfer = {.tensor = base,
                                          .from = home,
                                          .to = device,
                                          .bytes = bytes,
                                          .expected_bytes = is_state ? bytes / kStateInUse : bytes,
                                          .copied = is_state ? Copied::state : Copied::weight,
                                          .stays = stays}});
      if (first != 0) after(plan_.steps.back(), step_of_unit_[first - 1]);
    }
  }

  // Copies state home that no later unit uses, if it was changed elsewhere. The stretch ends at `end`.
  void return_state(std::uint32_t position, std::uint32_t end) {
    const std::uint32_t device = plan_.decisions[position].device;
    for (const TensorId input : plan_.units[position].inputs) {
      if (input == kNone) continue;
      const TensorId base = graph_.tensor(input).base;
      if (graph_.tensor(base).operand.kind != TensorKind::state || last_use_[base] != position) continue;
      last_use_[base] = kNone;  // a unit may read it twice
      const std::uint32_t copy = index_of(base, device);
      const std::uint32_t writer = uses_[copy].writer;
      if (plan_.residences[copy].kind == StorageKind::state || plan_.steps[writer].kind == Step::Kind::transfer)
        continue;
      const std::uint32_t home = index_of(base, home_of(base));
      Residence& from = plan_.residences[copy];
      const bool has_room = problem_.lanes[device].window_bytes >= kCopiesOnTheWay * from.bytes;
      from.last = std::min(end + (has_room ? kUnitsOnTheWay : 0), static_cast<std::uint32_t>(plan_.units.size()));
      Step step{.kind = Step::Kind::transfer,
                .transfer = {.tensor = base,
                             .from = device,
                             .to = plan_.residences[home].device,
                             .bytes = from.bytes,
                             .expected_bytes = changed_bytes(base),
                             .copied = Copied::state}};
      after(step, writer);
      const auto number = static_cast<std::uint32_t>(plan_.steps.size());
      uses_[copy].readers.push_back(number);
      set_writer(home, number);
      plan_.steps.push_back(std::move(step));
    }
  }

  // Returns how much of a state the plan changes.
  [[nodiscard]] std::uint64_t changed_bytes(TensorId base) const {
    const Operand& state = graph_.tensor(base).operand;
    const std::uint64_t elements = state.shape.elements();
    if (elements == 0) return 0;
    const double share = static_cast<double>(written_[base]) / static_cast<double>(elements);
    return static_cast<std::uint64_t>(std::min(share, 1.0) * static_cast<double>(state.span_bytes()));
  }

  // Returns the first unit of a long step that the device computes just before a position; else the position.
  [[nodiscard]] std::uint32_t first_of_last_units(std::uint32_t device, std::uint32_t position) const {
    int steps = 0;
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend() && steps < kStepsOnTheWay; ++step) {
      if (step->kind != Step::Kind::compute || step->device != device) continue;
      if (step->unit_count >= kUnitsOnTheWay) return step->first_unit;
      ++steps;
    }
    return position;
  }

  // Returns the last unit of the many that the device computes next from a position on; the position if they are few.
  [[nodiscard]] std::uint32_t last_of_next_units(std::uint32_t device, std::uint32_t position) const {
    const auto is_its = [&](const Decision& decision) { return decision.device == device; };
    const auto next = std::span(plan_.decisions).subspan(position);
    const auto first = std::ranges::find_if(next, is_its);
    const auto end = std::ranges::find_if_not(first, next.end(), is_its);
    if (static_cast<std::uint32_t>(end - first) < kUnitsOnTheWay) return position;
    return position + static_cast<std::uint32_t>(end - next.begin()) - 1;
  }

  // Returns the copy of an input that `device` can read, and adds a transfer step if there is none.
  std::uint32_t bring(TensorId base, std::uint32_t device, std::uint32_t position) {
    if (const std::uint32_t here = index_of(base, device); here != kNone) return here;
    const std::uint32_t copy_source = copies_[base].empty() ? kNone : copies_[base].front();
    const std::uint32_t copy = add_residence(base, device, position);
    if (plan_.residences[copy].kind != StorageKind::value || copy_source == kNone) return copy;
    Residence& source = plan_.residences[copy_source];
    source.last = std::max(source.last, position);
    if (!is_brief_copy(base, device) && !goes_through_host(problem_.lanes[source.device], problem_.lanes[device])) {
      // Its devices need not wait for it: neither to go on, nor before it begins.
      source.last = std::max(source.last, last_of_next_units(source.device, position));
      plan_.residences[copy].first = first_of_last_units(device, position);
    }
    Step step{.kind = Step::Kind::transfer,
              .transfer = {.tensor = base,
                           .from = source.device,
                           .to = device,
                           .bytes = source.bytes,
                           .expected_bytes = source.bytes}};
    after(step, uses_[copy_source].writer);
    const auto number = static_cast<std::uint32_t>(plan_.steps.size());
    uses_[copy_source].readers.push_back(number);
    set_writer(copy, number);
    plan_.steps.push_back(std::move(step));
    return copy;
  }

  // Returns whether a unit that reads these inputs must begin a new step. It must if it reads what another device makes
  // in the same memory, and the last step does not wait for that.
  [[nodiscard]] bool brings_news(std::span<const std::uint32_t> inputs, const Step& last) const {
    return std::ranges::any_of(inputs, [&](std::uint32_t input) {
      const std::uint32_t writer = uses_[input].writer;
      return writer != kNone && plan_.steps[writer].kind == Step::Kind::compute &&
             plan_.steps[writer].device != last.device && std::ranges::find(last.after, writer) == last.after.end();
    });
  }

  std::uint32_t step_for(std::uint32_t device, std::uint32_t position, std::span<const std::uint32_t> inputs) {
    if (!plan_.steps.empty()) {
      Step& last = plan_.steps.back();
      if (last.kind == Step::Kind::compute && last.device == device && !brings_news(inputs, last)) {
        ++last.unit_count;
        return static_cast<std::uint32_t>(plan_.steps.size() - 1);
      }
    }
    Step step{.kind = Step::Kind::compute, .device = device, .first_unit = position, .unit_count = 1};
    after(step, last_step_of_device_[device]);
    plan_.steps.push_back(std::move(step));
    last_step_of_device_[device] = static_cast<std::uint32_t>(plan_.steps.size() - 1);
    return last_step_of_device_[device];
  }

  void add_unit(std::uint32_t position) {
    const Unit& unit = plan_.units[position];
    const std::uint32_t device = plan_.decisions[position].device;
    std::vector<std::uint32_t> inputs;
    for (const TensorId input : unit.inputs)
      if (input != kNone) inputs.push_back(bring(graph_.tensor(input).base, device, position));
    const std::uint32_t number = step_for(device, position, inputs);
    step_of_unit_[position] = number;
    Step& step = plan_.steps[number];
    for (const std::uint32_t input : inputs) {
      plan_.residences[input].last = std::max(plan_.residences[input].last, position);
      if (uses_[input].writer != number) after(step, uses_[input].writer);
      uses_[input].readers.push_back(number);
    }
    const TensorId base = graph_.tensor(unit.output).base;
    std::uint32_t output = index_of(base, device);  // state is there already
    if (output == kNone) output = add_residence(base, device, position);
    for (const std::uint32_t reader : uses_[output].readers)
      if (reader != number) after(step, reader);
    set_writer(output, number);
  }

  void set_writer(std::uint32_t residence, std::uint32_t step) {
    uses_[residence].writer = step;
    if (uses_[residence].first == kNone) uses_[residence].first = step;
  }

  // Outputs are read after a run, and inputs keep their values for the next one.
  void keep_inputs_and_outputs() {
    const auto end = static_cast<std::uint32_t>(plan_.units.size());
    for (const TensorId output : graph_.outputs())
      for (const std::uint32_t copy : copies_[graph_.tensor(output).base]) plan_.residences[copy].last = end;
    for (Residence& residence : plan_.residences)
      if (residence.kind == StorageKind::input) residence.last = end;
  }

  // If a tensor reuses the memory of an earlier one, its writer waits for all users of the earlier one.
  void wait_for_users() {
    std::vector<std::uint32_t> order(plan_.residences.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t index) { return plan_.residences[index].first; });
    std::vector<Owners> arenas(plan_.devices.size());
    for (const std::uint32_t later : order) {
      const Residence& residence = plan_.residences[later];
      if (!in_arena(residence)) continue;
      arenas[residence.device].take(residence.offset, residence.offset + residence.bytes, later,
                                    [&](std::uint32_t earlier) {
                                      const std::uint32_t writer = uses_[later].first;
                                      if (writer == kNone) return;  // an input: before the first step
                                      for (const std::uint32_t user : uses_[earlier].readers)
                                        if (user != writer) after(plan_.steps[writer], user);
                                      if (uses_[earlier].writer != writer)
                                        after(plan_.steps[writer], uses_[earlier].writer);
                                    });
    }
  }

  // Each step becomes a program with scratch memory, some of which all programs of the device share.
  void add_scratch_of(const Step& step) {
    std::vector<UnitCall> units;
    for (std::uint32_t i = 0; i < step.unit_count; ++i) units.emplace_back(graph_, plan_.units[step.first_unit + i]);
    std::vector<OpCall> calls;
    for (const UnitCall& unit : units) calls.push_back(unit.call());
    const Support& support = problem_.cost_cache->of_program(calls, step.device);
    Plan::PlannedDevice& device = plan_.devices[step.device];
    const std::uint64_t shared = std::max(device.shared_scratch_bytes, support.shared_scratch_bytes);
    device.scratch_bytes += support.scratch_bytes - support.shared_scratch_bytes;
    device.scratch_bytes += shared - std::exchange(device.shared_scratch_bytes, shared);
  }

  void sum_memory() {
    for (const Step& step : plan_.steps)
      if (step.kind == Step::Kind::compute) add_scratch_of(step);
    for (std::size_t device = 0; device < plan_.devices.size(); ++device)
      if (std::ranges::any_of(plan_.steps, [&](const Step& step) {
            return step.transfer.copied != Copied::value && step.transfer.to == device;
          }))
        plan_.devices[device].scratch_bytes += problem_.devices[device]->weight_copy_bytes();
    std::map<std::string, MemoryUse> pools;
    for (const Plan::PlannedDevice& device : plan_.devices) {
      pools[device.pool].value_bytes += device.arena_bytes;
      pools[device.pool].scratch_bytes += device.scratch_bytes;
    }
    for (const Residence& residence : plan_.residences) {
      MemoryUse& pool = pools[plan_.devices[residence.device].pool];
      if (residence.kind == StorageKind::weight) pool.weight_bytes += residence.bytes;
      if (residence.kind == StorageKind::state) pool.state_bytes += residence.bytes;
    }
    for (const Step& step : plan_.steps) {
      if (!step.transfer.stays) continue;
      MemoryUse& pool = pools[plan_.devices[step.transfer.to].pool];
      pool.weight_bytes += step.transfer.bytes;
      pool.value_bytes -= step.transfer.bytes;
    }
    for (auto& [name, use] : pools) {
      use.pool = name;
      plan_.memory.push_back(use);
    }
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  Plan plan_;
  std::vector<Uses> uses_;                          // one per residence
  std::vector<std::vector<std::uint32_t>> copies_;  // the residences of each tensor, in order
  std::vector<std::uint32_t> last_step_of_device_;
  std::vector<CopyWindow> windows_;          // by device, of positions
  std::vector<std::uint32_t> step_of_unit_;  // kNone: it has none yet
  std::vector<std::uint32_t> last_use_;      // the last unit that reads each base; kNone: none, or no later one
  std::vector<std::uint64_t> written_;       // by base: elements, as far as it is state
};

}  // namespace

Plan schedule(const PlanProblem& problem, Placement placement) {
  return Scheduler(problem, std::move(placement)).schedule();
}

}  // namespace shunt
