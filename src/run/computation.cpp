#include "shunt/computation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "plan/planner.h"
#include "plan/row_shares.h"
#include "run/executable.h"
#include "run/fleet.h"
#include "run/strategy.h"

namespace shunt {

struct Computation::Parts {
  Parts(Graph made, const Runtime& its_runtime, WeightSource* source, const ComputationOptions& its_options)
      : graph(std::move(made)), runtime(its_runtime), options(its_options), fleet(its_runtime), weights(source) {
    for (const TensorInfo& tensor : graph.tensors()) has_state = has_state || tensor.operand.kind == TensorKind::state;
  }

  Graph graph;
  const Runtime& runtime;
  const ComputationOptions options;
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
  std::map<std::string, std::vector<std::byte>, std::less<>> inputs;
  Parameters last;
  std::uint32_t steps = 0;

  Status compile() {
    const DeviceSet set = fleet.devices();
    Graph used = graph;
    const auto request_for = [&](const Graph& placed, std::span<const RowSplit> splits) {
      return PlanRequest{.graph = &placed,
                         .devices = set.devices,
                         .costs = set.costs,
                         .suggested = suggestions(placed, splits),
                         .preferred = preferred_device(options.strategy, set.devices),
                         .budget_bytes = {set.budgets.begin(), set.budgets.end()},
                         .left_out = set.left_out,
                         .strict = set.strict,
                         .margin = options.margin};
    };
    Result<Plan> plan = make_plan(request_for(graph, {}));
    const auto us_of = [&](std::span<const RowSplit> splits) -> Result<double> {
      SHUNT_TRY_ASSIGN(const Graph split, split_rows(graph, splits));
      SHUNT_TRY_ASSIGN(const Plan its, make_plan(request_for(split, splits)));
      return its.predicted_us;
    };
    const std::vector<RowSplit> splits = choose_splits(request_for(graph, {}), plan ? &*plan : nullptr, us_of);
    if (!splits.empty()) {
      SHUNT_TRY_ASSIGN(used, split_rows(graph, splits));
      plan = make_plan(request_for(used, splits));
    }
    if (!plan) return std::unexpected(std::move(plan).error());
    fleet.note(*plan);
    SHUNT_TRY_ASSIGN(executable, Executable::create(std::move(used), *std::move(plan),
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
    for (const auto& [input, bytes] : inputs) SHUNT_TRY(write(input, bytes));
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

  Status write(std::string_view input, std::span<const std::byte> bytes) const {
    const auto id = executable->graph().find(input);
    if (!id) return fail(Code::invalid, fmt::format("the graph has no input \"{}\"", input));
    return executable->write_input(*id, bytes);
  }

  Status run(const Parameters& parameters) {
    return executable->run({.parameters = parameters,
                            .step = steps++,
                            .profile = options.profile,
                            .timeout = fleet.timeout(executable->plan().predicted_us)});
  }
};

Computation::Computation(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Computation::~Computation() = default;

Result<std::unique_ptr<Computation>> Computation::create(Graph graph, const Runtime& runtime, WeightSource* weights,
                                                         const ComputationOptions& options) {
  if (options.strategy == Strategy::layers)
    return fail(Code::invalid, "strategy layers is for language models: a graph of your own has no layers");
  auto parts = std::make_unique<Parts>(std::move(graph), runtime, weights, options);
  SHUNT_TRY(check_strategy(options.strategy, parts->fleet));
  SHUNT_TRY(parts->attempt([] { return Status{}; }));
  return std::unique_ptr<Computation>(new Computation(std::move(parts)));
}

Status Computation::write(std::string_view input, std::span<const std::byte> bytes) {
  if (parts_->is_outdated && !parts_->is_rebuilding) parts_->begin_anew();
  SHUNT_TRY(parts_->attempt([&] { return parts_->write(input, bytes); }));
  std::vector<std::byte>& kept = parts_->inputs[std::string(input)];
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
  return parts_->executable == nullptr ? "" : to_text(parts_->executable->plan(), parts_->executable->graph(), true);
}
std::string Computation::explain_json() const {
  return parts_->executable == nullptr ? "{}" : to_json(parts_->executable->plan(), parts_->executable->graph());
}

}  // namespace shunt
