#include "shunt/computation.h"
#include "ops/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "ops/elements.h"
#include "plan/planner.h"
#include "run/brief_calibration.h"
#include "run/executable.h"
#include "run/finite.h"
#include "run/fleet.h"
#include "run/plan_graph.h"
#include "run/plan_review.h"
#include "run/strategy.h"

namespace shunt {
namespace {

// Every row of the graph was computed, as its plan says.
bool fills(const Graph& graph, const Parameters& parameters) {
  return std::ranges::all_of(graph.tensors(), [&](const TensorInfo& tensor) {
    const Operand& operand = tensor.operand;
    return operand.extent == Extent::fixed ||
           valid_rows(operand.shape[0], operand.extent, parameters) == operand.shape[0];
  });
}

}  // namespace

struct Computation::Parts {
  Parts(Graph made, const Runtime& its_runtime, WeightSource* source, const ComputationOptions& its_options)
      : handle(its_runtime.share()),
        graph(std::move(made)),
        runtime(*handle),
        options(its_options),
        fleet(runtime),
        weights(source) {
    for (const TensorInfo& tensor : graph.tensors()) has_state = has_state || tensor.operand.kind == TensorKind::state;
    for (const Node& node : graph.nodes())
      writes_state = writes_state || (info_of(node.op).op_class != OpClass::layout &&
                                      graph.tensor(graph.tensor(node.output).base).operand.kind == TensorKind::state);
  }

  const std::unique_ptr<const Runtime> handle;  // what is below ends before it
  Graph graph;
  const Runtime& runtime;
  const ComputationOptions options;
  Fleet fleet;
  WeightStore weights;
  StateStore state;
  ArenaStore arenas;
  std::unique_ptr<Executable> executable;
  bool has_state = false;
  bool writes_state = false;
  bool state_is_written = false;  // by a run that went well: what one wrote that failed is made again by the next
  std::function<Status()> rebuild;
  bool is_rebuilding = false;
  bool is_outdated = false;  // a device may be used again
  // What was written, so that it can be written again.
  std::map<std::string, std::vector<std::byte>, std::less<>> inputs;
  Parameters last;
  bool is_computed = false;  // outputs are those of the last run
  std::uint32_t steps = 0;
  PlanReview review;
  double measure_us = 0;  // runs take so much before it is asked again whether to measure

  [[nodiscard]] Result<PlannedGraph> plan_for(const DeviceSet& set, std::optional<double> margin) const {
    return plan_graph(graph, set, options.strategy, margin);
  }

  Status compile() {
    const DeviceSet set = fleet.devices();
    SHUNT_TRY_ASSIGN(PlannedGraph planned, plan_for(set, options.margin));
    fleet.note(planned.plan);
    SHUNT_TRY_ASSIGN(executable, Executable::create(std::move(planned.graph), std::move(planned.plan),
                                                    {.devices = set.devices,
                                                     .weights = &weights,
                                                     .state = &state,
                                                     .arenas = &arenas,
                                                     .recorder = &runtime.recorder(),
                                                     .audits = &fleet.audits(),
                                                     .watch = &runtime.options().watch,
                                                     .may_stop = !has_state}));
    return {};
  }

  // Nothing that devices hold is used any more.
  void begin_anew() {
    executable = nullptr;
    weights.clear();
    state = {};
    arenas = {};
    review.begin_anew();
    is_computed = false;
    is_outdated = false;
  }

  Status restore() {
    SHUNT_TRY(compile());
    if (state_is_written) {
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
    const Device& clock = *fleet.devices().devices.front();
    const std::uint64_t begin_ns = clock.now_ns();
    SHUNT_TRY(executable->run({.parameters = parameters,
                               .step = steps++,
                               .profile = options.profile,
                               .timeout = fleet.timeout(executable->plan().predicted_us)}));
    if (!executable->actual_us().empty() && fills(graph, parameters)) {
      fleet.observe(executable->plan(), executable->actual_us());
      review.add_run(static_cast<double>(clock.now_ns() - begin_ns) * 1e-3, executable->plan().units.size());
    }
    last = parameters;
    is_computed = true;
    state_is_written = writes_state;
    // Later it cannot be told from what state to compute again.
    if (has_state && rebuild && !is_rebuilding)
      for (std::size_t index = 0; index < graph.outputs().size(); ++index) {
        const Operand& operand = graph.tensor(graph.outputs()[index]).operand;
        SHUNT_TRY_ASSIGN(const std::uint64_t size, bytes_of(operand.dtype, operand.shape));
        std::vector<std::byte> bytes(size);
        SHUNT_TRY(read(index, 0, bytes));
      }
    return {};
  }

  // Errors: besides those of a device, internal for a device that may be why numbers are not finite. Where no other may
  // do its work, they are what the caller gets.
  Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
    SHUNT_TRY(executable->read_output(index, offset, to));
    const Operand& operand = graph.tensor(graph.outputs()[index]).operand;
    if (!is_computed || runtime.options().strict || (has_state && !rebuild)) return {};
    return fleet.judge(fmt::format("numbers of output {}", index), are_finite(operand, last, offset, to),
                       executable->plan());
  }

  // After a run: a plan that is better by more than it costs to change to it.
  bool knows_better_plan() {
    // How long it takes to make the state again is not known.
    if (has_state || !review.is_due(fleet)) return false;
    const auto now_us = review.begin();
    if (!now_us) return false;
    doubt_what_runs_contradict(runtime, fleet);
    fleet.correct();
    const DeviceSet set = fleet.devices();
    const auto other = plan_for(set, options.margin);
    if (!other) return false;
    const Plan& plan = other->plan;
    const double gain_us = *now_us - plan.predicted_us * (1 + margin_or_default(options.margin, plan.is_measured));
    if (!review.is_worth(gain_us, review.planning_us() + weights_us(plan, set), steps)) return false;
    fleet.tell(fmt::format("a run takes {}; as devices turned out to be, another plan should take {}", in_time(*now_us),
                           in_time(plan.predicted_us)));
    return true;
  }

  // After a run: devices are known better, by measuring them. As much work is expected as there was.
  bool has_measured() {
    constexpr double kLeastUs = 3e6;
    if (options.strategy != Strategy::automatic || has_state || review.ran_us() < std::max(measure_us, kLeastUs))
      return false;
    measure_us = 2 * review.ran_us();
    const auto forecast = [&](const DeviceSet& set, std::optional<double> margin) -> Result<Forecast> {
      SHUNT_TRY_ASSIGN(const PlannedGraph planned, plan_for(set, margin));
      return forecast_of(planned.plan, steps);
    };
    if (!pays_to_measure({.runtime = runtime, .fleet = fleet, .margin = options.margin, .forecast = forecast}))
      return false;
    const Workload work{.graph = &graph, .times = static_cast<double>(steps)};
    const auto costs = measure_briefly(runtime, fleet, {&work, 1}, nullptr);
    if (costs) fleet.set_costs(*costs);
    return costs.has_value();
  }
};

Computation::Computation(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Computation::~Computation() = default;

Result<std::unique_ptr<Computation>> Computation::create(Graph graph, const Runtime& runtime, WeightSource* weights,
                                                         const ComputationOptions& options) {
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
  SHUNT_TRY(parts_->runtime.options().watch.check("a run"));
  if (parts_->is_outdated && !parts_->is_rebuilding) parts_->begin_anew();
  SHUNT_TRY(parts_->attempt([&] { return parts_->run(parameters); }));
  if (!parts_->is_rebuilding && (!parts_->has_state || parts_->rebuild))
    parts_->is_outdated = parts_->fleet.count_step() || parts_->has_measured() || parts_->knows_better_plan();
  return {};
}

Status Computation::read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const {
  Parts& parts = *parts_;
  if (parts.executable == nullptr) return fail(Code::invalid, "there is nothing to read: the last run failed");
  if (index >= output_count())
    return fail(Code::invalid, fmt::format("output {} of {} was asked for", index, output_count()));
  Status status = parts.read(index, offset, to);
  // What a run changed cannot be told from what was before it.
  if (status || parts.writes_state || parts.steps == 0 || status.error().device.empty()) return status;
  SHUNT_TRY(parts.fleet.recover(std::move(status).error()));
  parts.begin_anew();
  return parts.attempt([&]() -> Status {
    SHUNT_TRY(parts.run(parts.last));
    return parts.read(index, offset, to);
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
