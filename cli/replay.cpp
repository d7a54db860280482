// shunt replay: plans the steps of a trace, or its graph, again with another strategy or for other devices. Computes
// nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <set>
#include <span>

#include "answers.h"
#include "base/system/mapped_file.h"
#include "command.h"
#include "files.h"
#include "loading.h"
#include "models/step_planner.h"
#include "onnx/value.h"
#include "options.h"
#include "origin.h"
#include "output.h"
#include "plan/regret.h"
#include "run/plan_graph.h"
#include "run/strategy.h"
#include "trace/chrome.h"

namespace shunt::cli {
namespace {

struct ReplayOptions {
  std::string trace;
  std::string model;  // empty: the path in the trace
  SessionOptions session;
  RuntimeOptions runtime;
  std::optional<Option> strategy;
  std::optional<Option> numerics;
  bool json = false;
};

// A plan that ran, and the plan that would have run instead.
struct Replayed {
  PlanRegret before;
  double predicted_us = 0;
  std::vector<std::string> devices;
  std::size_t nodes = 0;
  std::size_t moved = 0;  // of them, those that moved to another device
};

// The times of all runs of all plans.
struct Total {
  double actual_us = 0;
  double predicted_us = 0;
  double replayed_us = 0;
};

Total total_of(std::span<const Replayed> steps) {
  Total total;
  for (const Replayed& step : steps) {
    const auto runs = static_cast<double>(step.before.actual.times);
    total.actual_us += runs * step.before.actual.mean_us;
    total.predicted_us += runs * step.before.plan.predicted_us;
    total.replayed_us += runs * step.predicted_us;
  }
  return total;
}

// Uses those of the trace's devices that its plans could use: of each GPU those of the API that was chosen.
void use_devices_of(std::span<const PlanRegret> plans, const Origin& origin, RuntimeOptions& runtime) {
  std::set<std::string_view> planned;
  for (const PlanRegret& plan : plans)
    for (const DecisionRegret& judged : plan.decisions)
      for (const CandidateRecord& candidate : judged.decision.candidates) planned.insert(candidate.device);
  std::vector<std::string_view> devices;
  for (const Origin::DeviceName& device : origin.devices)
    if (planned.contains(device.id)) devices.push_back(device.id);
  runtime.devices = fmt::format("{}", fmt::join(devices, ","));
  std::erase_if(runtime.budgets, [&](const auto& budget) { return !planned.contains(budget.first); });
}

// The options of the trace, overridden by those of the user. Devices and budgets do not carry over to another machine.
RuntimeOptions runtime_of(const ReplayOptions& options, const Origin& origin, std::span<const PlanRegret> plans) {
  RuntimeOptions runtime = origin.runtime();
  use_devices_of(plans, origin, runtime);
  const RuntimeOptions& asked = options.runtime;
  runtime.strict = asked.strict;
  runtime.on_notice = asked.on_notice;
  if (asked.threads != 0) runtime.threads = asked.threads;
  if (!asked.machine.empty()) {
    runtime.machine = asked.machine;
    runtime.devices.clear();
    runtime.budgets.clear();
  }
  if (!asked.devices.empty()) {
    runtime.devices = asked.devices;
    runtime.budgets.clear();
  }
  if (!asked.budgets.empty()) runtime.budgets = asked.budgets;
  return runtime;
}

Result<SessionOptions> session_of(const ReplayOptions& options, const Origin& origin) {
  SHUNT_TRY_ASSIGN(SessionOptions session, origin.session());
  if (options.strategy->was_given()) session.strategy = options.session.strategy;
  if (options.numerics->was_given()) session.numerics = options.session.numerics;
  if (options.session.margin) session.margin = options.session.margin;
  return session;
}

Replayed compare(PlanRegret before, const Graph& graph, const Plan& after) {
  Replayed replayed{
      .before = std::move(before), .predicted_us = after.predicted_us, .devices = working_devices(std::array{&after})};
  std::map<std::string_view, std::string_view> devices;
  for (const DecisionRegret& judged : replayed.before.decisions)
    for (const std::string& node : judged.decision.nodes) devices[node] = judged.decision.device;
  for (std::size_t index = 0; index < after.units.size(); ++index)
    for (const NodeId node : after.units[index].nodes) {
      const auto found = devices.find(graph.nodes()[node].name);
      ++replayed.nodes;
      if (found == devices.end() || found->second != after.devices[after.decisions[index].device].id) ++replayed.moved;
    }
  return replayed;
}

// Suggests --model, since the user may have moved the file.
Error with_hint(Error error, const ReplayOptions& options) {
  if (options.model.empty() && error.code == Code::io)
    error.message += "; if it was moved, name its new place with --model";
  return error;
}

Result<std::vector<Replayed>> plan_steps(std::vector<PlanRegret> plans, const ReplayOptions& options,
                                         const Origin& origin, const SessionOptions& session, const Runtime& runtime) {
  auto model = models::Model::load(options.model.empty() ? origin.model : options.model);
  if (!model) return std::unexpected(with_hint(std::move(model).error(), options));
  models::StepPlanner planner(**model, runtime, session, origin.context);
  std::vector<Replayed> steps;
  for (PlanRegret& plan : plans) {
    const std::uint32_t tokens = plan.plan.rows_of("tokens");
    if (tokens == 0)
      return fail(
          Code::invalid,
          fmt::format("plan {} of the trace is not a step of a language model; record the trace again", plan.number));
    SHUNT_TRY_ASSIGN(const PlannedGraph step, planner.plan(tokens, plan.plan.rows_of("output_rows")));
    steps.push_back(compare(std::move(plan), step.graph, step.plan));
  }
  return steps;
}

Result<std::vector<Replayed>> plan_graphs(std::vector<PlanRegret> plans, const ReplayOptions& options,
                                          const Origin& origin, const SessionOptions& session, const Runtime& runtime) {
  const std::string& path = options.model.empty() ? origin.model : options.model;
  auto file = MappedFile::open(path);
  if (!file) return std::unexpected(with_hint(std::move(file).error(), options));
  const auto model = onnx::parse_model((*file)->bytes());
  if (!model) return fail_at(path, model.error());
  std::map<std::string, Shape> shapes;
  for (const auto& [name, extents] : origin.shapes) {
    SHUNT_TRY_ASSIGN(const Shape shape, onnx::shape_from(extents));
    shapes.emplace(name, shape);
  }
  SHUNT_TRY_ASSIGN(onnx::Imported imported, import_graph(*model, path, shapes));
  imported.graph.set_numerics(session.numerics);
  SHUNT_TRY_ASSIGN(const PlannedGraph planned, plan_graph(imported.graph, runtime, session.strategy, session.margin));
  std::vector<Replayed> steps;
  for (PlanRegret& plan : plans) steps.push_back(compare(std::move(plan), planned.graph, planned.plan));
  return steps;
}

Json to_json(std::span<const Replayed> steps, const Origin& origin, const SessionOptions& session) {
  Json json = {{"model", origin.model}, {"strategy", name_of(session.strategy)}, {"steps", Json::array()}};
  for (const Replayed& step : steps)
    json["steps"].push_back({{"plan", step.before.number},
                             {"tokens", step.before.plan.rows_of("tokens")},
                             {"runs", step.before.actual.times},
                             {"actual_us", step.before.actual.mean_us},
                             {"predicted_us", step.before.plan.predicted_us},
                             {"replayed_us", step.predicted_us},
                             {"devices", step.devices},
                             {"nodes", step.nodes},
                             {"moved_nodes", step.moved}});
  const Total total = total_of(steps);
  json["total"] = {
      {"actual_us", total.actual_us}, {"predicted_us", total.predicted_us}, {"replayed_us", total.replayed_us}};
  return json;
}

std::string to_text(std::span<const Replayed> steps, const SessionOptions& session) {
  const auto ms = [](double us) { return fmt::format("{:.3f}", us / 1e3); };
  Rows rows = {{"plan", "runs", "took ms", "predicted ms", "replayed ms", "moved", "devices"}};
  for (const Replayed& step : steps)
    rows.push_back(
        {fmt::format("{}, {}", step.before.number, step.before.title()), fmt::to_string(step.before.actual.times),
         ms(step.before.actual.mean_us), ms(step.before.plan.predicted_us), ms(step.predicted_us),
         fmt::format("{} of {} ops", step.moved, step.nodes), fmt::format("{}", fmt::join(step.devices, ", "))});
  const Total total = total_of(steps);
  rows.push_back({"all runs", "", ms(total.actual_us), ms(total.predicted_us), ms(total.replayed_us), "", ""});
  std::string text = in_columns(rows);
  if (total.predicted_us > 0 && total.replayed_us > 0)
    text += fmt::format("strategy {}: predicted to take {:.3g} times the predicted time of the plans that ran\n",
                        name_of(session.strategy), total.replayed_us / total.predicted_us);
  return text;
}

Status execute(const ReplayOptions& options) {
  SHUNT_TRY_ASSIGN(const trace::Recording recording, trace::read_chrome_trace(options.trace));
  auto found = origin_in(recording);
  if (!found) return fail_at(options.trace, std::move(found).error());
  const Origin& origin = *found;
  SHUNT_TRY_ASSIGN(std::vector<PlanRegret> plans, regrets_of(recording));
  SHUNT_TRY_ASSIGN(const SessionOptions session, session_of(options, origin));
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(runtime_of(options, origin, plans)));
  SHUNT_TRY(check_strategy(session.strategy, DevicePool(*runtime)));
  const auto plan_again = origin.is_graph() ? plan_graphs : plan_steps;
  SHUNT_TRY_ASSIGN(const std::vector<Replayed> steps, plan_again(std::move(plans), options, origin, session, *runtime));
  if (recording.overwritten > 0)
    note(fmt::format("The trace lacks the first {} of {} events; their runs are not counted.", recording.overwritten,
                     recording.recorded));
  return options.json ? print_json(to_json(steps, origin, session)) : print(to_text(steps, session));
}

}  // namespace

Action replay(CommandLine& line) {
  auto options = std::make_shared<ReplayOptions>();
  line.input("TRACE", options->trace, "File written by --trace of run, eval, bench model or run-graph").required();
  add_model_file(line, "--model", options->model, "The model, if it was moved since the trace was recorded")
      .value_name("FILE");
  add_strategy(line, options->session, options->runtime);
  add_runtime(line, options->runtime, true);
  add_json(line, options->json);
  options->strategy = line.find("--strategy");
  options->numerics = line.find("--numerics");
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
