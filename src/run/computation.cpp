#include "shunt/computation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "plan/planner.h"
#include "run/executable.h"
#include "run/fleet.h"

namespace shunt {

struct Computation::Parts {
  Parts(Graph made, const Runtime& its_runtime, WeightSource* source)
      : graph(std::move(made)), runtime(its_runtime), fleet(its_runtime), weights(source) {
    for (const TensorInfo& tensor : graph.tensors()) has_state = has_state || tensor.operand.kind == TensorKind::state;
  }

  Graph graph;
  const Runtime& runtime;
  Fleet fleet;
  WeightStore weights;
  StateStore state;
  ArenaStore arenas;
  std::unique_ptr<Executable> executable;
  bool has_state = false;
  std::function<Status()> rebuild;
  bool is_rebuilding = false;
  bool is_outdated = false;  // a device may be used again
  // What was written, so that it can be written again.
  std::map<TensorId, std::vector<std::byte>> inputs;
  Parameters last;
  std::uint32_t steps = 0;

  Status compile() {
    const DeviceSet set = fleet.devices();
    SHUNT_TRY_ASSIGN(Plan plan, make_plan({.graph = &graph,
                                           .devices = set.devices,
                                           .costs = set.costs,
                                           .budget_bytes = {set.budgets.begin(), set.budgets.end()}}));
    fleet.note(plan);
    SHUNT_TRY_ASSIGN(executable, Executable::create(graph, std::move(plan),
                                                    {.devices = set.devices,
                                                     .weights = &weights,
                                                     .state = &state,
                                                     .arenas = &arenas,
                                                     .recorder = &runtime.recorder(),
                                                     .audits = &fleet.audits()}));
    return {};
  }

  // Nothing that devices hold is used any more.
  void begin_anew() {
    executable = nullptr;
    weights.clear();
    state = {};
    arenas = {};
    is_outdated = false;
  }

  Status restore() {
    SHUNT_TRY(compile());
    if (has_state && steps != 0) {
      if (!rebuild)
        return fail(Code::device_lost,
                    "the graph's state was lost with a device, and only its owner can compute it again: say how with "
                    "Computation::on_lost_state()");
      const auto inputs_of_run = inputs;
      is_rebuilding = true;
      Status rebuilt = rebuild();
      is_rebuilding = false;
      inputs = inputs_of_run;
      SHUNT_TRY(std::move(rebuilt));
    }
    for (const auto& [input, bytes] : inputs) SHUNT_TRY(executable->write_input(input, bytes));
    return {};
  }

  // Does `work`, with whatever devices are left.
  template <class Work>
  Status attempt(const Work& work) {
    while (true) {
      Status status;
      if (executable == nullptr) status = restore();
      if (!status) executable = nullptr;
      if (status) status = work();
      // A state that is lost while it is made is made from the beginning.
      if (status || is_rebuilding) return status;
      SHUNT_TRY(fleet.recover(std::move(status).error()));
      begin_anew();
    }
  }

  Status run(const Parameters& parameters) {
    return executable->run(
        {.parameters = parameters, .step = steps++, .timeout = fleet.timeout(executable->plan().predicted_us)});
  }
};

Computation::Computation(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Computation::~Computation() = default;

Result<std::unique_ptr<Computation>> Computation::create(Graph graph, const Runtime& runtime, WeightSource* weights) {
  auto parts = std::make_unique<Parts>(std::move(graph), runtime, weights);
  SHUNT_TRY(parts->attempt([] { return Status{}; }));
  return std::unique_ptr<Computation>(new Computation(std::move(parts)));
}

Status Computation::write(std::string_view input, std::span<const std::byte> bytes) {
  const auto id = parts_->graph.find(input);
  if (!id) return fail(Code::invalid, fmt::format("the graph has no input \"{}\"", input));
  if (parts_->is_outdated && !parts_->is_rebuilding) parts_->begin_anew();
  SHUNT_TRY(parts_->attempt([&] { return parts_->executable->write_input(*id, bytes); }));
  std::vector<std::byte>& kept = parts_->inputs[*id];
  kept.resize(std::max(kept.size(), bytes.size()));
  std::ranges::copy(bytes, kept.begin());
  return {};
}

Status Computation::run(const Parameters& parameters) {
  if (parts_->is_outdated && !parts_->is_rebuilding) parts_->begin_anew();
  SHUNT_TRY(parts_->attempt([&] { return parts_->run(parameters); }));
  parts_->last = parameters;
  if (!parts_->is_rebuilding && (!parts_->has_state || parts_->rebuild) && parts_->fleet.count_step())
    parts_->is_outdated = true;
  return {};
}

Status Computation::read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const {
  Parts& parts = *parts_;
  if (parts.executable == nullptr) return fail(Code::invalid, "there is nothing to read: the last run failed");
  Status status = parts.executable->read_output(index, offset, to);
  // What a run changed cannot be told from what was before it.
  if (status || parts.has_state || parts.steps == 0 || status.error().device.empty()) return status;
  SHUNT_TRY(parts.fleet.recover(std::move(status).error()));
  parts.begin_anew();
  return parts.attempt([&]() -> Status {
    SHUNT_TRY(parts.run(parts.last));
    return parts.executable->read_output(index, offset, to);
  });
}

void Computation::on_lost_state(std::function<Status()> rebuild) { parts_->rebuild = std::move(rebuild); }

std::size_t Computation::output_count() const { return parts_->graph.outputs().size(); }

const TensorInfo& Computation::output(std::size_t index) const {
  return parts_->graph.tensor(parts_->graph.outputs()[index]);
}

std::string Computation::explain() const {
  return parts_->executable == nullptr ? "" : to_text(parts_->executable->plan(), parts_->graph, true);
}
std::string Computation::explain_json() const {
  return parts_->executable == nullptr ? "{}" : to_json(parts_->executable->plan(), parts_->graph);
}

}  // namespace shunt
