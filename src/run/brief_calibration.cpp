#include "run/brief_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/planner.h"
#include "plan/profile.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// What it may cost, and when it ends, as a measurement that has begun is not cut off.
constexpr double kMostSeconds = 3;
constexpr double kSeconds = 2;

using Devices = std::span<Device* const>;

// Nothing can be chosen between the kernels of one processor.
bool has_choice(Devices devices) {
  return devices.size() > 1 &&
         std::ranges::any_of(devices, [](const Device* device) { return !device->info().is_host_cpu(); });
}

// What knowing better can save: the device that would do most turns out as slow as is believed possible, all others as
// fast, and the work is planned for that instead.
Result<double> most_saved_us(const MeasuringOptions& options) {
  DeviceSet set = options.fleet.devices();
  SHUNT_TRY_ASSIGN(const Forecast believed, options.forecast(set, options.margin));
  std::vector<DeviceCost> costs(set.costs.begin(), set.costs.end());
  const auto uncertainty = [&](std::size_t device) {
    return costs[device].is_measured() ? 0 : set.devices[device]->info().prior.uncertainty;
  };
  const double worst_us = believed.us * (1 + uncertainty(believed.device));
  if (worst_us < kMostSeconds * 1e6) return 0;
  for (std::size_t device = 0; device < costs.size(); ++device)
    costs[device].correct(device == believed.device ? 1 + uncertainty(device) : 1 - uncertainty(device));
  set.costs = costs;
  SHUNT_TRY_ASSIGN(const Forecast other, options.forecast(set, margin_or_default(options.margin, true)));
  return worst_us - other.us;
}

// Measures each of `devices` within an equal part of the time that is left. False: it was interrupted.
bool measure(const Watch& watch, const Fleet& fleet, Devices devices, std::span<const Workload> work,
             std::vector<DeviceProfile>& profiles,
             const std::atomic<bool>* interrupted) {
  const auto is_interrupted = [&] { return watch.is_interrupted() || (interrupted != nullptr && interrupted->load()); };
  const auto now_s = [&] { return static_cast<double>(devices[0]->now_ns()) / 1e9; };
  const double end_s = now_s() + kSeconds;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const double share_s = (end_s - now_s()) / static_cast<double>(devices.size() - index);
    auto found = calibrate_briefly(
        *devices[index], work, share_s, {.progress = [&](const std::string&, std::size_t done, std::size_t count) {
          // How much there is to measure of the next devices is not known yet: as much as of this one.
          watch.report(ProgressKind::measuring, index * count + done, devices.size() * count);
          return !is_interrupted();
        }});
    if (is_interrupted()) return false;
    if (found)
      profiles.push_back(std::move(*found));
    else
      fleet.tell(fmt::format("{} cannot be measured: {}", devices[index]->info().id, found.error().message));
  }
  return true;
}

}  // namespace

Forecast forecast_of(const Plan& plan, double times) {
  std::vector<double> busy_us(plan.devices.size());
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::compute) busy_us[step.device] += step.end_us - step.start_us;
  return {.us = plan.predicted_us * times,
          .device = static_cast<std::size_t>(std::ranges::max_element(busy_us) - busy_us.begin())};
}

bool pays_to_measure(const MeasuringOptions& options) {
  const DeviceSet set = options.fleet.devices();
  if (!options.runtime.options().calibrated || !has_choice(set.devices) ||
      std::ranges::all_of(set.costs, &DeviceCost::is_measured))
    return false;
  // Where no plan can be made, the first step will say so.
  return most_saved_us(options).value_or(0) >= kMostSeconds * 1e6;
}

std::optional<std::vector<DeviceCost>> measure_briefly(const Runtime& runtime, const Fleet& fleet,
                                                       std::span<const Workload> work,
                                                       const std::atomic<bool>* interrupted) {
  const DeviceSet set = fleet.devices();
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
    fleet.tell(
        fmt::format("measuring {} before so much work, {} s at most; kept in {}; `shunt calibrate` measures better",
                    fmt::join(ids, ", "), kMostSeconds, path->string()));
    trace::Recorder& recorder = runtime.recorder();
    const bool is_traced = recorder.enabled();
    recorder.set_enabled(false);
    std::vector<DeviceProfile> found;
    const bool is_done = measure(runtime.options().watch, fleet, unmeasured, work, found, interrupted);
    recorder.set_enabled(is_traced);
    if (!is_done) return std::nullopt;
    for (const DeviceProfile& device : found) {
      if (const Status saved = add_to_profile(*path, device, nullptr); !saved) fleet.tell(saved.error().message);
      profile->set(device);
    }
  }
  std::vector<DeviceCost> costs;
  for (const Device* device : set.devices) costs.emplace_back(device->info(), profile->find(device->info()));
  return costs;
}

}  // namespace shunt
