// shunt calibrate: measures the devices of this machine, and keeps the results for all later plans.
#include "run/measure/calibration.h"
#include "run/opened_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/stopwatch.h"
#include "command.h"
#include "devices/cpu/device.h"
#include "files.h"
#include "interrupt.h"
#include "loading.h"
#include "models/context.h"
#include "models/kernel_steps.h"
#include "models/step_planner.h"
#include "models/step_ratios.h"
#include "options.h"
#include "output.h"
#include "plan/costs/profile.h"
#include "run/measure/other_work.h"
#include "run/measure/samples.h"

namespace shunt::cli {
namespace {

struct CalibrateOptions {
  std::string model;
  bool quick = false;
  bool check = false;
  bool busy = false;
  Numerics numerics = Numerics::automatic;
  RuntimeOptions runtime;
  bool json = false;
};

// Without a model, whole steps are measured with random weights of this shape: too large for any cache, and small
// enough for most devices.
constexpr std::string_view kStepShape = "168m";
constexpr std::string_view kStepType = "Q8_0";

constexpr std::array kCheckedTokens = {1U, 4U, 64U, 256U, 512U};

// The shapes of a model are visited again only if one visit took less.
constexpr double kEnoughSeconds = 10;

// The reference runs only what no other device can. Unless it is named, it is enough to know its ops for one token.
constexpr std::array kTokensOfReference = {1U};

bool is_unnamed_reference(const Device& device, const CalibrateOptions& options) {
  return device.info().id == cpu::kScalarId && options.runtime.devices.empty() && !options.check;
}

// Attention is also measured in contexts shorter than the model's.
constexpr std::array kContexts = {128U, 1024U};

// The distinct op cases in steps of these numbers of tokens.
Result<std::vector<BenchCase>> cases_of_model(const models::Model& model, const Runtime& runtime, Device& device,
                                              const SessionOptions& session, std::span<const std::uint32_t> tokens) {
  SHUNT_TRY_ASSIGN(const std::uint32_t longest, models::choose_context(model, runtime, session));
  std::set<std::uint32_t> contexts = {longest};
  for (const std::uint32_t context : kContexts) contexts.insert(std::min(context, longest));
  std::vector<BenchCase> cases;
  std::set<std::string> calls;
  for (const std::uint32_t context : contexts) {
    const models::StepPlanner planner(model, runtime, session, context);
    for (const std::uint32_t count : tokens) {
      SHUNT_TRY_ASSIGN(const Graph graph, planner.graph_of(std::min(count, context), 1));
      for (BenchCase& use : cases_of(graph, device))
        if (calls.insert(to_string(BenchOperands(use).call())).second) cases.push_back(std::move(use));
    }
  }
  return cases;
}

// The cases of the model if there is one, else typical ones.
Result<std::vector<BenchCase>> cases_for(const CalibrateOptions& options, const Runtime& runtime, Device& device,
                                         const models::Model* model) {
  if (model != nullptr) {
    std::span<const std::uint32_t> tokens = kMeasuredTokens;
    if (options.check) tokens = kCheckedTokens;
    if (is_unnamed_reference(device, options)) tokens = kTokensOfReference;
    SHUNT_TRY_ASSIGN(auto found, cases_of_model(*model, runtime, device, {.numerics = options.numerics}, tokens));
    if (!options.check) std::erase_if(found, [](const BenchCase& use) { return !is_measured(use); });
    return found;
  }
  std::vector<BenchCase> cases = calibration_cases(options.quick || options.check, options.numerics);
  if (options.check) std::ranges::move(unseen_cases(options.numerics), std::back_inserter(cases));
  return cases;
}

std::string rates_in_words(const LinkRates& link) {
  return link.bytes_per_s == 0 ? "-" : fmt::format("{:.1f} us + {:.1f} GB/s", link.us, link.bytes_per_s / 1e9);
}

std::map<std::string, std::size_t> shapes_by_kernel(std::span<const KernelChoice> choices) {
  std::map<std::string, std::size_t> counts;
  for (const KernelChoice& choice : choices) ++counts[choice.kernel];
  return counts;
}

std::string to_text(const Profile& profile, const std::filesystem::path& path) {
  std::string text = fmt::format("{:<12} {:>9} {:>8} {:>8} {:>22} {:>22} {:>22} {:>6} {:>6} {:>7} {:>7}\n", "device",
                                 "launch us", "wake us", "op us", "to device", "from device", "from other devices",
                                 "few", "many", "kinds", "shapes");
  for (const DeviceProfile& device : profile.devices) {
    std::size_t shapes = 0;
    for (const auto& [kind, points] : device.ops) shapes += points.size();
    text += fmt::format("{:<12} {:>9.2f} {:>8.2f} {:>8.2f} {:>22} {:>22} {:>22} {:>6.2f} {:>6.2f} {:>7} {:>7}\n",
                        device.id, device.launch_us, device.wake_us, device.op_us, rates_in_words(device.to_device),
                        rates_in_words(device.from_device), rates_in_words(device.from_peers), device.few_tokens_ratio,
                        device.many_tokens_ratio, device.ops.size(), shapes);
    for (const auto& [kind, choices] : device.choices)
      for (const auto& [kernel, count] : shapes_by_kernel(choices))
        text += fmt::format("  {} by {}: {} shapes\n", kind, kernel, count);
    for (const auto& [op, why] : device.refused) text += fmt::format("  {} is not used on this device: {}\n", op, why);
  }
  return text + fmt::format(
                    "few, many: the time of whole steps of few and of many tokens, relative to the sum of their "
                    "ops\nkept in {}\n",
                    path.string());
}

// Errors of the predictions for seen or for unseen shapes.
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
  return print(text + "difference between the predicted and the measured time, relative to the measured time\n");
}

using Progress = std::function<bool(const std::string& what, std::size_t done, std::size_t count)>;

// Runs `work` with a progress line, until Ctrl-C.
template <class Work>
auto with_progress(const Device& device, const Work& work) {
  ProgressLine line;
  const std::atomic<bool>& ending = catch_interrupts();
  return work([&](const std::string& what, std::size_t done, std::size_t count) {
    line.show(fmt::format("{}: {} of {}, {}", device.info().id, done + 1, count, what));
    return !ending.load();
  });
}

Result<Checked> check(Device& device, std::span<const BenchCase> cases, const DeviceProfile* before, bool quick) {
  const std::string& id = device.info().id;
  if (before == nullptr)
    return fail(Code::invalid, fmt::format("{0} was not measured; run `shunt calibrate --devices {0}` first", id));
  // Ops are compared with their times alone.
  DeviceProfile alone = *before;
  alone.few_tokens_ratio = alone.many_tokens_ratio = 1;
  auto checked = with_progress(device, [&](const Progress& progress) {
    return check_predictions(device, cases, alone, {.quick = quick, .progress = progress});
  });
  if (!checked) return fail_at(id, std::move(checked).error());
  return Checked{id, std::move(*checked)};
}

void note_that_steps_are_not_measured(std::string_view where, const Error& error) {
  note(fmt::format("{}: whole steps were not measured: {}", where, error.message));
}

// Runs whole steps of the model with kernels that won alone. Without a model, or if it does not run there, nothing is
// confirmed, and only choices of typical shapes count.
Result<std::vector<KernelComparison>> confirm(const Device& device, std::vector<KernelComparison> comparisons,
                                              const models::Model* model, const CalibrateOptions& options,
                                              const Progress& progress) {
  const std::string& id = device.info().id;
  std::string_view why = "steps take longer so";
  std::vector<KernelComparison> confirmed = comparisons;
  if (model != nullptr) {
    const auto run = [&]() -> Result<std::vector<KernelComparison>> {
      SHUNT_TRY_ASSIGN(const auto alone, Runtime::create({.threads = options.runtime.threads, .devices = id}));
      return models::confirm_kernels(
          *model, *alone, options.numerics, comparisons,
          [&](std::size_t done, std::size_t count) { return progress("steps with other kernels", done, count); });
    };
    auto found = run();
    if (found) {
      confirmed = std::move(*found);
    } else if (found.error().code == Code::interrupted) {
      return found;
    } else {
      why = "steps were not measured";
      note_that_steps_are_not_measured(id, found.error());
      for (KernelComparison& each : confirmed) each.choice.kernel = each.by_rule();
    }
  }
  for (std::size_t number = 0; number < comparisons.size(); ++number) {
    const bool is_kept = confirmed[number].choice.kernel == comparisons[number].choice.kernel;
    note(fmt::format("{}: {}: {} {}", id, to_text(comparisons[number]), comparisons[number].choice.kernel,
                     is_kept ? "from now on" : fmt::format("not taken, {}", why)));
  }
  return confirmed;
}

// Errors: unsupported if other programs disturb the second try as well.
Result<DeviceProfile> measure_undisturbed(const Device& device, const CalibrateOptions& options,
                                          const std::function<Result<DeviceProfile>()>& measure) {
  const auto may_repeat = [&](const WatchedProfile& first) {
    if (!options.busy)
      note(fmt::format("{}: other programs took {:.0f} % of its processors; measuring it again", device.info().id,
                       100 * first.taken));
    return !options.busy;
  };
  SHUNT_TRY_ASSIGN(WatchedProfile found,
                   measure_watched(device.info(), [] { return processor_times(); }, measure, may_repeat));
  if (options.busy || !found.is_disturbed()) return std::move(found.profile);
  return fail_at(device.info().id,
                 Error{Code::unsupported,
                       fmt::format("other programs took {:.0f} % of its processors, so what was measured is not kept; "
                                   "measure again when they have ended, or keep it all the same with --busy",
                                   100 * found.taken)});
}

Result<DeviceProfile> measure(Device& device, Device* peer, std::span<const BenchCase> cases,
                              const DeviceProfile* before, const models::Model* model,
                              const CalibrateOptions& options) {
  const bool goes_on = before != nullptr && !before->is_brief;
  auto found = with_progress(device, [&](const Progress& progress) {
    return calibrate(
        device, cases, goes_on ? *before : unmeasured(device.info()),
        {.quick = options.quick || is_unnamed_reference(device, options),
         .checks_all = options.model.empty() && !options.quick,
         .enough_seconds = options.model.empty() ? std::numeric_limits<double>::infinity() : kEnoughSeconds,
         .peer = peer,
         .confirm =
             [&](std::vector<KernelComparison> comparisons) {
               return confirm(device, std::move(comparisons), model, options, progress);
             },
         .progress = progress});
  });
  if (!found) return fail_at(device.info().id, std::move(found).error());
  return found;
}

// Measures whole steps, planned with the profile as it is kept.
Result<DeviceProfile> measure_steps(const Device& device, const models::Model& model, const CalibrateOptions& options,
                                    const DeviceProfile& profile) {
  SHUNT_TRY_ASSIGN(const auto alone, Runtime::create({.threads = options.runtime.threads, .devices = profile.id}));
  return with_progress(device, [&](const Progress& progress) {
    return models::measure_steps(model, *alone, options.numerics, profile, [&](std::size_t done, std::size_t count) {
      return progress("whole steps", done, count);
    });
  });
}

// The results of all devices.
struct Results {
  std::filesystem::path path;
  Profile kept;  // at `path`, except what other processes have added since
  Profile measured;
  std::vector<Checked> checks;
  std::vector<Error> failures;

  // Saves what was measured, even if a later device fails.
  Status keep(const DeviceProfile& found) {
    measured.set(found);
    const auto before = std::ranges::find(kept.devices, found.id, &DeviceProfile::id);
    SHUNT_TRY(add_to_profile(path, found, before == kept.devices.end() ? nullptr : &*before));
    kept.set(found);
    return {};
  }
  [[nodiscard]] Status show(const CalibrateOptions& options, double seconds) const {
    if (checks.empty() && measured.devices.empty()) return {};
    note(fmt::format("{:.1f} s", seconds));
    if (options.check) return print_checks(checks, options.json);
    return print(options.json ? to_json(measured) : to_text(measured, path));
  }
  // Errors: the reasons why devices were not measured.
  [[nodiscard]] Status status() const {
    if (failures.empty()) return {};
    Error all = failures.front();
    for (const Error& failure : std::span(failures).subspan(1)) all.message += "; " + failure.message;
    return std::unexpected(std::move(all));
  }
};

// Measures or checks one device. Errors: only those that would stop every other device too.
// `model`: the one whose shapes these are, or null.
Status add_device(Device& device, Device* peer, const CalibrateOptions& options, std::span<const BenchCase> cases,
                  const models::Model* model, const models::Model* steps, Results& results) {
  const DeviceProfile* const before = results.kept.find(device.info());
  if (options.check) {
    auto checked = check(device, cases, before, options.quick);
    if (checked) results.checks.push_back(std::move(*checked));
    if (!checked) results.failures.push_back(std::move(checked).error());
    return {};
  }
  auto found =
      measure_undisturbed(device, options, [&] { return measure(device, peer, cases, before, model, options); });
  if (!found) {
    results.failures.push_back(std::move(found).error());
    return {};
  }
  if (steps != nullptr) found->few_tokens_ratio = found->many_tokens_ratio = 1;
  SHUNT_TRY(results.keep(*found));
  if (steps == nullptr) return {};
  found = measure_undisturbed(device, options, [&] { return measure_steps(device, *steps, options, *found); });
  if (found) return results.keep(*found);
  if (was_interrupted())
    results.failures.push_back(std::move(found).error());
  else
    note_that_steps_are_not_measured(device.info().id, found.error());
  return {};
}

Status execute(CalibrateOptions& options) {
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  Results results;
  SHUNT_TRY_ASSIGN(results.path, profile_path());
  std::unique_ptr<models::Model> model;
  std::unique_ptr<models::Model> made;
  if (!options.model.empty()) {
    SHUNT_TRY_ASSIGN(model, models::Model::load(options.model));
  } else if (!options.quick && !options.check) {
    auto step_model = random_model(kStepShape, kStepType, results.path.parent_path());
    if (was_interrupted()) return std::unexpected(std::move(step_model).error());
    if (step_model)
      made = *std::move(step_model);
    else
      note_that_steps_are_not_measured("all devices", step_model.error());
  }
  std::string warning;  // the runtime has already printed it
  SHUNT_TRY_ASSIGN(results.kept, load_profile(results.path, warning));
  const Stopwatch watch;
  const std::span<Device* const> devices = opened(*runtime).handles();
  for (Device* device : devices) {
    SHUNT_TRY_ASSIGN(const std::vector<BenchCase> cases, cases_for(options, *runtime, *device, model.get()));
    const models::Model* const steps = made ? made.get() : model.get();
    SHUNT_TRY(add_device(*device, peer_of(*device, devices), options, cases, model.get(),
                         is_unnamed_reference(*device, options) ? nullptr : steps, results));
    if (was_interrupted()) break;
  }
  SHUNT_TRY(results.show(options, watch.seconds()));
  return results.status();
}

}  // namespace

Action calibrate(CommandLine& line) {
  auto options = std::make_shared<CalibrateOptions>();
  add_model_file(line, "MODEL", options->model, "GGUF file whose shapes to measure [shapes of common models]");
  line.flag("--check", options->check,
            "Keep the measurements, and compare predictions with times measured now, for seen and unseen shapes");
  line.flag("--quick", options->quick, "Measure fewer sizes and dtypes, less exactly, and check small operands only");
  line.files.add_output("the file of measurements", [] {
    const auto path = profile_path();
    return std::vector{path ? path->string() : std::string()};
  });
  line.flag("--busy", options->busy, "Keep what is measured of processors even while other programs use them");
  add_numerics(line, options->numerics);
  add_threads(line, options->runtime.threads);
  line.option("--devices", options->runtime.devices,
              fmt::format("Devices to measure, such as cpu:simd,vulkan:0 [{}]", kAllDevices))
      .value_name("LIST");
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
