#include "run/graph_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/elements.h"
#include "run/finite.h"

namespace shunt {
namespace {

// Returns whether every row of the graph was computed, as its plan assumes.
bool fills(const Graph& graph, const Parameters& parameters) {
  return std::ranges::all_of(graph.tensors(), [&](const TensorInfo& tensor) {
    const Operand& operand = tensor.operand;
    return operand.extent == Extent::fixed ||
           valid_rows(operand.shape[0], operand.extent, parameters) == operand.shape[0];
  });
}

Graph with_numerics(Graph graph, Numerics numerics) {
  graph.set_numerics(numerics);
  return graph;
}

bool is_state(const TensorInfo& tensor) { return tensor.operand.kind == TensorKind::state; }

// Plans the single bucket, once.
class Planner final : public BucketPlanner {
 public:
  Planner(const Graph& graph, const DeviceSet& set, Strategy strategy, std::optional<double> margin)
      : graph_(graph), devices_(set), strategy_(strategy), margin_(margin) {}

  Result<PlannedGraph> plan(Bucket) override {
    if (!planned_) {
      SHUNT_TRY_ASSIGN(planned_, plan_graph(graph_, devices_.set(), strategy_, margin_));
    }
    return *planned_;
  }
  void explain(PlannedGraph& planned) override { explain_graph(planned, devices_.set(), strategy_, margin_); }
  Result<PredictedWork> predicted_work() override {
    SHUNT_TRY_ASSIGN(const PlannedGraph planned, plan(kRepeated));
    return PredictedWork{.us = planned.plan.predicted_us, .what = "a run"};
  }
  Result<Plan> estimate(const BucketPlanner&) override {
    SHUNT_TRY_ASSIGN(PlannedGraph planned, plan(kRepeated));
    return std::move(planned.plan);
  }

 private:
  const Graph& graph_;
  const DeviceSnapshot devices_;
  const Strategy strategy_;
  const std::optional<double> margin_;
  std::optional<PlannedGraph> planned_;
};

}  // namespace

GraphClient::GraphClient(Graph graph, const Runtime& runtime, WeightSource* weights, const ComputationOptions& options)
    : runtime_(runtime.share()),
      graph_(with_numerics(std::move(graph), options.numerics)),
      options_(options),
      has_state_(std::ranges::any_of(graph_.tensors(), [](const TensorInfo& tensor) { return is_state(tensor); })),
      writes_state_(std::ranges::any_of(graph_.nodes(),
                                        [&](const Node& node) {
                                          return info_of(node.op).op_class != OpClass::layout &&
                                                 is_state(graph_.tensor(graph_.tensor(node.output).base));
                                        })),
      runner_(*runtime_, *this,
              {.weights = weights,
               .margin = options.margin,
               .profile = options.profile,
               .may_stop = !has_state_,
               .watch = &runtime_->options().watch}) {}

std::unique_ptr<BucketPlanner> GraphClient::planner_for(const DeviceSet& set, std::optional<double> margin) const {
  return std::make_unique<Planner>(graph_, set, options_.strategy, margin);
}

// Expects as much work as there was. The time to rebuild state is unknown.
std::vector<RunClient::Expected> GraphClient::expected() const {
  if (options_.strategy != Strategy::automatic || has_state_) return {};
  return {{.bucket = kRepeated, .times = static_cast<double>(runner_.runs())}};
}

Result<std::vector<RunClient::Sample>> GraphClient::samples() const {
  return std::vector<Sample>{{.graph = graph_, .times = static_cast<double>(runner_.runs())}};
}

std::optional<double> GraphClient::rebuild_us(BucketPlanner& /*planner*/) const {
  return state_is_written_ && !rebuild_state_ ? std::nullopt : std::optional(0.0);
}

void GraphClient::forget() {
  is_restored_ = false;
  is_computed_ = false;
}

Status GraphClient::rebuild() {
  if (is_restored_) return {};
  SHUNT_TRY(runner_.executable_for(kRepeated));
  if (state_is_written_) {
    if (!rebuild_state_)
      return fail(Code::device_lost,
                  "the graph's state was lost with a device; use Computation::on_lost_state() to compute it again");
    const auto inputs_of_run = inputs_;
    Status rebuilt = rebuild_state_();
    inputs_ = inputs_of_run;
    if (!rebuilt) runner_.start_over();  // half-rebuilt state is not zero
    SHUNT_TRY(std::move(rebuilt));
  }
  for (const auto& [input, bytes] : inputs_) SHUNT_TRY(write_now(input, bytes));
  is_restored_ = true;
  return {};
}

Executable* GraphClient::executable() const {
  return is_restored_ || runner_.is_rebuilding() ? runner_.find(kRepeated) : nullptr;
}

std::optional<PlannedGraph> GraphClient::explained() {
  return executable() == nullptr ? std::nullopt : std::optional(runner_.explained());
}

Status GraphClient::write(std::string_view input, std::span<const std::byte> bytes) {
  SHUNT_TRY(runner_.attempt([&] { return write_now(input, bytes); }));
  std::vector<std::byte>& kept = inputs_[std::string(input)];
  kept.resize(std::max(kept.size(), bytes.size()));
  std::ranges::copy(bytes, kept.begin());
  return {};
}

Status GraphClient::write_now(std::string_view input, std::span<const std::byte> bytes) const {
  const auto id = executable()->graph().find(input);
  if (!id) return fail(Code::invalid, fmt::format("the graph has no input \"{}\"", input));
  return executable()->write_input(*id, bytes);
}

Status GraphClient::run(const Parameters& parameters) {
  SHUNT_TRY(runtime_->options().watch.check("a run"));
  SHUNT_TRY(runner_.attempt([&] { return run_now(parameters); }));
  if (!runner_.is_rebuilding() && (!has_state_ || rebuild_state_)) runner_.finish(!has_state_);
  return {};
}

Status GraphClient::run_now(const Parameters& parameters) {
  SHUNT_TRY(runner_.run(*executable(), runner_.next_submission(*executable(), parameters), fills(graph_, parameters)));
  last_ = parameters;
  is_computed_ = true;
  state_is_written_ = writes_state_;
  // Read outputs now: later there is no telling from what state to compute them again.
  if (has_state_ && rebuild_state_ && !runner_.is_rebuilding())
    for (std::size_t index = 0; index < graph_.outputs().size(); ++index) {
      const Operand& operand = graph_.tensor(graph_.outputs()[index]).operand;
      SHUNT_TRY_ASSIGN(const std::uint64_t size, bytes_of(operand.dtype, operand.shape));
      std::vector<std::byte> bytes(size);
      SHUNT_TRY(read_now(index, 0, bytes));
    }
  return {};
}

Status GraphClient::read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
  if (executable() == nullptr) return fail(Code::invalid, "there is nothing to read: the last run failed");
  if (index >= graph_.outputs().size())
    return fail(Code::invalid,
                fmt::format("output {} was asked for, but the graph has {}", index, graph_.outputs().size()));
  Status status = read_now(index, offset, to);
  // After a run changed state, there is no telling what it was before.
  if (status || writes_state_ || runner_.runs() == 0 || status.error().device.empty()) return status;
  SHUNT_TRY(runner_.recover(std::move(status).error()));
  return runner_.attempt([&]() -> Status {
    SHUNT_TRY(run_now(last_));
    return read_now(index, offset, to);
  });
}

// Errors: those of a device, and internal for a device that may be why numbers are not finite. If no other device may
// do its work, the caller gets them.
Status GraphClient::read_now(std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
  SHUNT_TRY(executable()->read_output(index, offset, to));
  const Operand& operand = graph_.tensor(graph_.outputs()[index]).operand;
  if (!is_computed_ || runtime_->options().strict || (has_state_ && !rebuild_state_)) return {};
  return runner_.device_pool().judge(fmt::format("numbers of output {}", index), are_finite(operand, last_, offset, to),
                                     executable()->plan());
}

}  // namespace shunt
