// shunt calibrate: measures the devices of this machine and keeps what it found for all later plans.
#include "run/calibration.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "command.h"
#include "interrupt.h"
#include "loading.h"
#include "models/step_ratios.h"
#include "options.h"
#include "output.h"
#include "plan/profile.h"
#include "run/samples.h"
#include "run/stopwatch.h"

namespace shunt::cli {
namespace {

struct Options {
  std::string model;
  bool quick = false;
  bool check = false;
  RuntimeOptions runtime;
  bool json = false;
};

// Without a model, whole steps are measured of one of random weights: large enough that no cache holds it, and small
// enough for most devices.
constexpr std::string_view kStepShape = "168m";
constexpr std::string_view kStepType = "Q8_0";

constexpr std::array kCheckedTokens = {1U, 4U, 64U, 256U, 512U};

// Attention is measured in shorter contexts than the model's too.
constexpr std::array kContexts = {128U, 1024U};

// The different shapes of steps of so many tokens.
Result<std::vector<OpCase>> cases_of_model(const models::Model& model, const Runtime& runtime, Device& device,
                                           std::span<const std::uint32_t> tokens) {
  SHUNT_TRY_ASSIGN(const std::uint32_t longest, models::choose_context(model, runtime, {}));
  std::set<std::uint32_t> contexts = {longest};
  for (const std::uint32_t context : kContexts) contexts.insert(std::min(context, longest));
  std::vector<OpCase> cases;
  std::set<std::string> calls;
  for (const std::uint32_t context : contexts) {
    const models::StepPlanner planner(model, runtime, {}, context);
    for (const std::uint32_t count : tokens) {
      SHUNT_TRY_ASSIGN(const Graph graph, planner.graph_of(std::min(count, context), 1));
      for (OpCase& use : cases_of(graph, device))
        if (calls.insert(to_string(OpOperands(use).call())).second) cases.push_back(std::move(use));
    }
  }
  return cases;
}

// Those of the model, if there is one, else those that models have.
Result<std::vector<OpCase>> cases_for(const Options& options, const Runtime& runtime, Device& device,
                                      const models::Model* model) {
  if (model != nullptr)
    return cases_of_model(*model, runtime, device,
                          options.check ? std::span<const std::uint32_t>(kCheckedTokens) : kMeasuredTokens);
  std::vector<OpCase> cases = calibration_cases(options.quick || options.check);
  if (options.check) std::ranges::move(unseen_cases(), std::back_inserter(cases));
  return cases;
}

std::string in_words(const LinkRates& link) {
  return link.bytes_per_s == 0 ? "-" : fmt::format("{:.1f} us + {:.1f} GB/s", link.us, link.bytes_per_s / 1e9);
}

std::string to_text(const Profile& profile, const std::filesystem::path& path) {
  std::string text =
      fmt::format("{:<12} {:>9} {:>8} {:>8} {:>22} {:>22} {:>6} {:>6} {:>7} {:>7}\n", "device", "launch us", "wake us",
                  "op us", "to device", "from device", "few", "many", "kinds", "shapes");
  for (const DeviceProfile& device : profile.devices) {
    std::size_t shapes = 0;
    for (const auto& [kind, points] : device.ops) shapes += points.size();
    text += fmt::format("{:<12} {:>9.2f} {:>8.2f} {:>8.2f} {:>22} {:>22} {:>6.2f} {:>6.2f} {:>7} {:>7}\n", device.id,
                        device.launch_us, device.wake_us, device.op_us, in_words(device.to_device),
                        in_words(device.from_device), device.few_tokens_ratio, device.many_tokens_ratio,
                        device.ops.size(), shapes);
    for (const auto& [op, why] : device.refused) text += fmt::format("  {} is not used here: {}\n", op, why);
  }
  return text + fmt::format(
                    "few, many: what whole steps of few and of many tokens took, relative to the sum of their "
                    "ops\nkept in {}\n",
                    path.string());
}

// How far predictions were off, of seen or of unseen shapes.
struct Errors {
  Samples relative;  // without sign
  void add(double error) { relative.add(std::abs(error)); }
  [[nodiscard]] Json json() const {
    if (relative.empty()) return {{"count", 0}};
    return {{"count", relative.count()}, {"median", relative.median()}, {"p90", relative.quantile(0.9)}};
  }
  [[nodiscard]] std::string text() const {
    if (relative.empty()) return fmt::format("{:>6} {:>8} {:>8}", 0, "-", "-");
    return fmt::format("{:>6} {:>6.1f} % {:>6.1f} %", relative.count(), 100 * relative.median(),
                       100 * relative.quantile(0.9));
  }
};

struct Checked {
  std::string device;
  std::vector<CheckedOp> ops;
  [[nodiscard]] Errors errors(bool seen) const {
    Errors errors;
    for (const CheckedOp& op : ops)
      if (op.is_seen == seen) errors.add(op.error());
    return errors;
  }
};

Status print_checks(const std::vector<Checked>& checks, bool as_json) {
  if (as_json) {
    Json json = Json::array();
    for (const Checked& check : checks) {
      Json ops = Json::array();
      for (const CheckedOp& op : check.ops)
        ops.push_back({{"kind", op.kind},
                       {"seen", op.is_seen},
                       {"flops", op.cost.flops},
                       {"bytes_read", op.cost.bytes_read},
                       {"bytes_written", op.cost.bytes_written},
                       {"predicted_us", op.predicted.us},
                       {"uncertainty_us", op.predicted.uncertainty_us},
                       {"us", op.us}});
      json.push_back({{"device", check.device},
                      {"seen", check.errors(true).json()},
                      {"unseen", check.errors(false).json()},
                      {"ops", std::move(ops)}});
    }
    return print_json(json);
  }
  std::string text =
      fmt::format("{:<12} {:^24} {:^24}\n{:<12} {:>6} {:>8} {:>8} {:>6} {:>8} {:>8}\n", "", "seen shapes",
                  "unseen shapes", "device", "count", "median", "90 %", "count", "median", "90 %");
  for (const Checked& check : checks)
    text += fmt::format("{:<12} {} {}\n", check.device, check.errors(true).text(), check.errors(false).text());
  return print(text + "by how much predictions differ from what was measured now, relative to that\n");
}

using Progress = std::function<bool(const std::string& what, std::size_t done, std::size_t count)>;

// With a line of progress and an ear for Ctrl-C.
template <class Work>
auto with_progress(const Device& device, const Work& work) {
  ProgressLine line;
  const std::atomic<bool>& ending = catch_interrupts();
  return work([&](const std::string& what, std::size_t done, std::size_t count) {
    line.show(fmt::format("{}: {} of {}, {}", device.info().id, done + 1, count, what));
    return !ending.load();
  });
}

Result<Checked> check(Device& device, std::span<const OpCase> cases, const DeviceProfile* before, bool quick) {
  const std::string& id = device.info().id;
  if (before == nullptr)
    return fail(Code::invalid, fmt::format("{0} was not measured; run `shunt calibrate --devices {0}` before", id));
  // Ops are held against what they take alone.
  DeviceProfile alone = *before;
  alone.few_tokens_ratio = alone.many_tokens_ratio = 1;
  auto checked = with_progress(device, [&](const Progress& progress) {
    return check_predictions(device, cases, alone, {.quick = quick, .progress = progress});
  });
  if (!checked) return fail_at(id, std::move(checked).error());
  return Checked{id, std::move(*checked)};
}

Result<DeviceProfile> measure(Device& device, std::span<const OpCase> cases, const DeviceProfile* before, bool quick) {
  const bool goes_on = before != nullptr && !before->is_brief;
  auto found = with_progress(device, [&](const Progress& progress) {
    return calibrate(device, cases, goes_on ? *before : unmeasured(device.info()),
                     {.quick = quick, .progress = progress});
  });
  if (!found) return fail_at(device.info().id, std::move(found).error());
  return found;
}

Result<DeviceProfile> measure_steps(const Device& device, const models::Model& model, std::uint32_t threads,
                                    const DeviceProfile& profile) {
  SHUNT_TRY_ASSIGN(const auto alone, Runtime::create({.threads = threads, .devices = profile.id, .calibrated = false}));
  auto found = with_progress(device, [&](const Progress& progress) {
    return models::measure_steps(model, *alone, profile, [&](std::size_t done, std::size_t count) {
      return progress("whole steps", done, count);
    });
  });
  if (found) return found;
  if (found.error().code != Code::out_of_memory) return fail_at(device.info().id, std::move(found).error());
  note(fmt::format("{}: whole steps are not measured: {}", device.info().id, found.error().message));
  return profile;
}

Status execute(Options& options) {
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const std::filesystem::path path, profile_path());
  std::unique_ptr<models::Model> model;
  std::unique_ptr<models::Model> made;
  if (!options.model.empty()) {
    SHUNT_TRY_ASSIGN(model, models::Model::load(options.model));
  } else if (!options.quick && !options.check) {
    SHUNT_TRY_ASSIGN(made, random_model(kStepShape, kStepType, path.parent_path()));
  }
  std::string warning;  // the runtime has given it
  SHUNT_TRY_ASSIGN(Profile profile, load_profile(path, warning));
  Profile measured;
  std::vector<Checked> checks;
  const Stopwatch watch;
  for (Device* device : runtime->devices()) {
    SHUNT_TRY_ASSIGN(const std::vector<OpCase> cases, cases_for(options, *runtime, *device, model.get()));
    const DeviceProfile* const before = profile.find(device->info());
    if (options.check) {
      SHUNT_TRY_ASSIGN(checks.emplace_back(), check(*device, cases, before, options.quick));
      continue;
    }
    SHUNT_TRY_ASSIGN(DeviceProfile found, measure(*device, cases, before, options.quick));
    if (const models::Model* steps = made ? made.get() : model.get()) {
      SHUNT_TRY_ASSIGN(found, measure_steps(*device, *steps, options.runtime.threads, found));
    }
    profile.set(found);
    measured.set(found);
    // What was measured stays, whatever becomes of the next device.
    SHUNT_TRY(save_profile(profile, path));
  }
  note(fmt::format("{:.1f} s", watch.seconds()));
  if (options.check) return print_checks(checks, options.json);
  return print(options.json ? to_json(measured) : to_text(measured, path));
}

}  // namespace

Action calibrate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, "GGUF file whose shapes are to be measured [those of usual models]");
  app.add_flag(
      "--check", options->check,
      "Measure nothing new, but hold what was predicted of shapes, seen and unseen, against what they take now");
  app.add_flag("--quick", options->quick, "Fewer sizes and dtypes, and less exact");
  add_threads(app, options->runtime.threads);
  app.add_option("--devices", options->runtime.devices, "Devices to measure, such as cpu:simd,vulkan:0 [all]")
      ->type_name("LIST");
  add_json(app, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
