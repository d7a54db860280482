#include "models/brief_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "devices/device.h"
#include "models/step_planner.h"
#include "plan/profile.h"
#include "run/calibration.h"
#include "trace/recorder.h"

namespace shunt::models {
namespace {

// What it may cost, and when it ends, as a measurement that has begun is not cut off.
constexpr double kMostSeconds = 3;
constexpr double kSeconds = 2;
// Tokens of the prompt whose ops are measured: they reach the rates of long prompts, or nearly, in less time.
constexpr std::uint64_t kMeasuredPrompt = 64;
// The context that attention is measured at, at most: what a longer one takes follows from it.
constexpr std::uint32_t kMeasuredContext = 1024;

using Devices = std::span<Device* const>;

// Nothing can be chosen between the kernels of one processor.
bool has_choice(Devices devices) {
  return devices.size() > 1 &&
         std::ranges::any_of(devices, [](const Device* device) { return !device->info().is_host_cpu(); });
}

std::uint32_t prompt_step(const BriefCalibration& request, std::uint64_t most) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>({request.work.prompt_tokens, request.options.batch, most}));
}

struct Forecast {
  double us = 0;
  std::size_t device = 0;  // that computes longest in a step of one token
};

Result<Forecast> forecast(const BriefCalibration& request, const DeviceSet& set, const SessionOptions& options) {
  StepPlanner planner(request.model, set, options, request.context);
  SHUNT_TRY_ASSIGN(const PlannedStep one, planner.plan(1, 1));
  Forecast found{.us = one.plan.predicted_us * static_cast<double>(request.work.generated_tokens)};
  if (const std::uint32_t tokens = prompt_step(request, request.context); tokens != 0) {
    SHUNT_TRY_ASSIGN(const PlannedStep prompt, planner.plan(tokens, 1));
    found.us += prompt.plan.predicted_us * static_cast<double>(request.work.prompt_tokens) / tokens;
  }
  std::vector<double> busy_us(set.devices.size());
  for (const Step& step : one.plan.steps)
    if (step.kind == Step::Kind::compute) busy_us[step.device] += step.end_us - step.start_us;
  found.device = static_cast<std::size_t>(std::ranges::max_element(busy_us) - busy_us.begin());
  return found;
}

// What knowing better can save: the device that would do most turns out as slow as is believed possible, all others as
// fast, and the work is planned for that instead.
Result<double> most_saved_us(const BriefCalibration& request) {
  DeviceSet set = request.fleet.devices();
  SHUNT_TRY_ASSIGN(const Forecast believed, forecast(request, set, request.options));
  std::vector<DeviceCost> costs(set.costs.begin(), set.costs.end());
  const auto uncertainty = [&](std::size_t device) {
    return costs[device].is_measured() ? 0 : set.devices[device]->info().prior.uncertainty;
  };
  const double worst_us = believed.us * (1 + uncertainty(believed.device));
  if (worst_us < kMostSeconds * 1e6) return 0;
  for (std::size_t device = 0; device < costs.size(); ++device)
    costs[device].correct(device == believed.device ? 1 + uncertainty(device) : 1 - uncertainty(device));
  set.costs = costs;
  SessionOptions options = request.options;
  options.margin = margin_or_default(options.margin, true);
  SHUNT_TRY_ASSIGN(const Forecast other, forecast(request, set, options));
  return worst_us - other.us;
}

// Measures each of `devices` within an equal part of the time that is left. False: it was interrupted.
Result<bool> measure(const BriefCalibration& request, Devices devices, Profile& profile) {
  const StepPlanner planner(request.model, request.fleet.devices(), request.options,
                            std::min(request.context, kMeasuredContext));
  SHUNT_TRY_ASSIGN(const Graph one, planner.graph_of(1, 1));
  const std::uint32_t tokens = std::max(prompt_step(request, kMeasuredPrompt), 1U);
  SHUNT_TRY_ASSIGN(const Graph prompt, planner.graph_of(tokens, 1));
  const Workload work[] = {{&one, static_cast<double>(request.work.generated_tokens)},
                           {&prompt, static_cast<double>(request.work.prompt_tokens) / tokens}};
  const auto is_interrupted = [&] { return request.interrupted != nullptr && request.interrupted->load(); };
  const auto now_s = [&] { return static_cast<double>(devices[0]->now_ns()) / 1e9; };
  const double end_s = now_s() + kSeconds;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const double share_s = (end_s - now_s()) / static_cast<double>(devices.size() - index);
    auto found = calibrate_briefly(
        *devices[index], work, share_s,
        {.progress = [&](const std::string&, std::size_t, std::size_t) { return !is_interrupted(); }});
    if (is_interrupted()) return false;
    if (found)
      profile.set(std::move(*found));
    else
      request.fleet.tell(fmt::format("{} cannot be measured: {}", devices[index]->info().id, found.error().message));
  }
  return true;
}

}  // namespace

std::optional<std::vector<DeviceCost>> calibrate_for(const BriefCalibration& request) {
  const DeviceSet set = request.fleet.devices();
  const bool is_open = request.runtime.options().calibrated && request.options.strategy == Strategy::automatic;
  if (!is_open || !has_choice(set.devices) || std::ranges::all_of(set.costs, &DeviceCost::is_measured))
    return std::nullopt;
  // Where no plan can be made, the first step will say so.
  if (most_saved_us(request).value_or(0) < kMostSeconds * 1e6) return std::nullopt;
  const auto path = profile_path();
  std::string warning;  // the runtime has given it
  auto profile = path ? load_profile(*path, warning) : Result<Profile>(std::unexpected(path.error()));
  if (!profile) return std::nullopt;
  std::vector<Device*> unmeasured;
  std::vector<std::string> ids;
  for (std::size_t index = 0; index < set.devices.size(); ++index) {
    Device* const device = set.devices[index];
    // Another session may have measured it meanwhile.
    if (set.costs[index].is_measured() || profile->find(device->info()) != nullptr) continue;
    unmeasured.push_back(device);
    ids.push_back(device->info().id);
  }
  if (!unmeasured.empty()) {
    request.fleet.tell(
        fmt::format("measuring {} before so much work, {} s at most; kept in {}; `shunt calibrate` measures better",
                    fmt::join(ids, ", "), kMostSeconds, path->string()));
    trace::Recorder& recorder = request.runtime.recorder();
    const bool is_traced = recorder.enabled();
    recorder.set_enabled(false);
    const auto is_done = measure(request, unmeasured, *profile);
    recorder.set_enabled(is_traced);
    if (!is_done.value_or(false)) return std::nullopt;
    if (const Status saved = save_profile(*profile, *path); !saved) request.fleet.tell(saved.error().message);
  }
  std::vector<DeviceCost> costs;
  for (const Device* device : set.devices) costs.emplace_back(device->info(), profile->find(device->info()));
  return costs;
}

}  // namespace shunt::models
