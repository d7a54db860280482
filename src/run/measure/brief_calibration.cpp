#include "run/measure/brief_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/costs/profile.h"
#include "plan/planner.h"
#include "run/opened_devices.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// The most that measuring may take, and when it stops starting measurements: one that has begun is not cut off.
constexpr double kMostSeconds = 3;
constexpr double kSeconds = 2;
// A record to be checked may be off by this factor, in either direction.
constexpr double kMostWrong = 1000;

using Devices = std::span<Device* const>;

// One processor's kernels leave no choice.
bool has_choice(Devices devices) {
  return devices.size() > 1 &&
         std::ranges::any_of(devices, [](const Device* device) { return !device->info().is_host_cpu(); });
}

// The factors by which a device may really be slower, or faster, than its costs say.
struct Doubt {
  double slower = 1;
  double faster = 1;
};

Doubt doubt_of(const DeviceCost& cost, const Device& device, double now_s) {
  if (cost.is_due(now_s)) return {.slower = kMostWrong, .faster = 1 / kMostWrong};
  const double uncertainty = cost.is_measured() ? 0 : device.info().prior.uncertainty;
  return {.slower = 1 + uncertainty, .faster = 1 - uncertainty};
}

// Estimates the time saved if measured costs replace the priors. The device with the most work turns out as slow as its
// costs allow, all others as fast, and the work is planned for that instead.
Result<double> most_saved_us(const MeasuringOptions& options, double now_s) {
  DeviceSet set = options.device_pool.devices();
  SHUNT_TRY_ASSIGN(const Forecast believed, options.forecast(set, options.margin));
  std::vector<DeviceCost> costs(set.costs.begin(), set.costs.end());
  const DeviceCost& of_most = costs[believed.device];
  const double worst_us = believed.us * doubt_of(of_most, *set.devices[believed.device], now_s).slower;
  // A record that is only old is taken at its word here, so that it does not hold up every short job.
  const bool is_only_old = of_most.is_due(now_s) && !of_most.is_doubted();
  if ((is_only_old ? believed.us : worst_us) < kMostSeconds * 1e6) return 0;
  for (std::size_t device = 0; device < costs.size(); ++device) {
    const Doubt doubt = doubt_of(costs[device], *set.devices[device], now_s);
    costs[device].correct(device == believed.device ? doubt.slower : doubt.faster);
  }
  set.costs = costs;
  SHUNT_TRY_ASSIGN(const Forecast other, options.forecast(set, margin_or_default(options.margin, true)));
  return worst_us - other.us;
}

bool needs_measuring(const DeviceCost& cost, double now_s) {
  return cost.has_profile() ? cost.is_due(now_s) : !cost.is_measured();
}

// Measures each of `devices`, or checks what `known` has of it, in an equal share of the time left. False: interrupted.
bool measure(const Watch& watch, const DevicePool& device_pool, Devices devices, std::span<const Workload> work,
             const Profile& known, std::vector<DeviceProfile>& found, const std::atomic<bool>* interrupted) {
  const auto is_interrupted = [&] { return watch.is_interrupted() || (interrupted != nullptr && interrupted->load()); };
  const auto now_s = [&] { return static_cast<double>(devices[0]->now_ns()) / 1e9; };
  const double end_s = now_s() + kSeconds;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const double share_s = (end_s - now_s()) / static_cast<double>(devices.size() - index);
    const CalibrationOptions options{.progress = [&](const std::string&, std::size_t done, std::size_t count) {
      // The number of measurements of the next devices is unknown; assume as many as of this one.
      watch.report(ProgressKind::measuring, index * count + done, devices.size() * count);
      return !is_interrupted();
    }};
    const DeviceProfile* const before = known.find(devices[index]->info());
    auto measured = before == nullptr ? calibrate_briefly(*devices[index], work, share_s, options)
                                      : check_briefly(*devices[index], work, share_s, *before, options);
    if (is_interrupted()) return false;
    if (measured)
      found.push_back(std::move(*measured));
    else
      device_pool.tell(fmt::format("{} cannot be measured: {}", devices[index]->info().id, measured.error().message));
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
  const DeviceSet set = options.device_pool.devices();
  const double now_s = unix_seconds();
  if (!options.runtime.options().calibrated || !has_choice(set.devices) ||
      std::ranges::none_of(set.costs, [&](const DeviceCost& cost) { return needs_measuring(cost, now_s); }))
    return false;
  // If no plan can be made, the first step will report it.
  return most_saved_us(options, now_s).value_or(0) >= kMostSeconds * 1e6;
}

std::optional<std::vector<DeviceCost>> measure_briefly(const Runtime& runtime, const DevicePool& device_pool,
                                                       std::span<const Workload> work,
                                                       const std::atomic<bool>* interrupted) {
  const DeviceSet set = device_pool.devices();
  const auto path = profile_path();
  std::string warning;  // the runtime has reported it
  auto profile = path ? load_profile(*path, warning) : Result<Profile>(std::unexpected(path.error()));
  if (!profile) return std::nullopt;
  const double now_s = unix_seconds();
  std::vector<Device*> devices;
  std::vector<std::string> ids;
  for (std::size_t index = 0; index < set.devices.size(); ++index) {
    Device* const device = set.devices[index];
    if (!needs_measuring(set.costs[index], now_s)) continue;
    // Another session may have measured the device meanwhile.
    const DeviceProfile* const kept = profile->find(device->info());
    if (kept != nullptr && (!set.costs[index].has_profile() || kept->checked_s > set.costs[index].checked_s()))
      continue;
    devices.push_back(device);
    ids.push_back(device->info().id);
  }
  if (!devices.empty()) {
    device_pool.tell(
        fmt::format("measuring {} before a long run, for at most {} s; kept in {}; `shunt calibrate` measures better",
                    fmt::join(ids, ", "), kMostSeconds, path->string()));
    trace::Recorder& recorder = opened(runtime).recorder();
    const bool is_traced = recorder.enabled();
    recorder.set_enabled(false);
    std::vector<DeviceProfile> found;
    const bool is_done = measure(runtime.options().watch, device_pool, devices, work, *profile, found, interrupted);
    recorder.set_enabled(is_traced);
    if (!is_done) return std::nullopt;
    for (const DeviceProfile& device : found) {
      const auto before = std::ranges::find(profile->devices, device.id, &DeviceProfile::id);
      if (const Status saved = add_to_profile(*path, device, before == profile->devices.end() ? nullptr : &*before);
          !saved)
        device_pool.tell(saved.error().message);
      profile->set(device);
    }
  }
  std::vector<DeviceCost> costs;
  for (const Device* device : set.devices) costs.emplace_back(device->info(), profile->find(device->info()));
  return costs;
}

void doubt_what_runs_contradict(const Runtime& runtime, DevicePool& device_pool) {
  const std::vector<std::string> ids = device_pool.doubt_contradicted();
  if (ids.empty() || !runtime.options().calibrated) return;
  const auto path = profile_path();
  std::string warning;  // the runtime has reported it
  auto profile = path ? load_profile(*path, warning) : Result<Profile>(std::unexpected(path.error()));
  if (!profile) return;
  for (const DeviceProfile& device : profile->devices) {
    if (std::ranges::find(ids, device.id) == ids.end()) continue;
    DeviceProfile doubted = device;
    doubted.checked_s = 0;
    if (const Status saved = add_to_profile(*path, doubted, &device); !saved) device_pool.tell(saved.error().message);
  }
}

}  // namespace shunt
