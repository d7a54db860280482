#include "run/measure/brief_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "plan/costs/outliers.h"
#include "plan/costs/profile.h"
#include "plan/planner.h"
#include "run/measure/record_check.h"
#include "run/opened_devices.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// The most that measuring may take, and when it stops starting measurements: one that has begun is not cut off.
constexpr double kMostSeconds = 3;
constexpr double kSeconds = 2;
// A record to be checked may be off by this factor at most, in either direction.
constexpr double kMostWrong = 1000;

using Devices = std::span<Device* const>;

// One processor's kernels leave no choice.
bool has_choice(Devices devices) {
  return devices.size() > 1 &&
         std::ranges::any_of(devices, [](const Device* device) { return !device->info().is_host_cpu(); });
}

// The reasons to measure a device before some work.
struct Need {
  bool is_unmeasured = false;
  bool is_due = false;            // its records are old, or were contradicted or refused
  std::vector<Outlier> outliers;  // unconfirmed ones that predictions of the work may rest on

  [[nodiscard]] bool exists() const { return is_unmeasured || is_due || !outliers.empty(); }
};

std::vector<Outlier> outliers_under(std::span<const Workload> work, const DeviceCost& cost, Device& device) {
  if (cost.unconfirmed().empty()) return {};
  std::vector<std::pair<std::string, Cost>> shapes;
  for (const BenchCase& use : cases_by_time(work, device)) {
    const BenchOperands operands(use);
    shapes.emplace_back(kind_on(device, operands.call()), cost_of(operands.call()));
  }
  std::vector<Outlier> outliers;
  for (const Outlier& outlier : cost.unconfirmed())
    if (std::ranges::any_of(shapes,
                            [&](const auto& shape) { return cost.may_rest_on(outlier, shape.first, shape.second); }))
      outliers.push_back(outlier);
  return outliers;
}

Need need_of(const DeviceCost& cost, Device& device, std::span<const Workload> work, double now_s) {
  if (!cost.has_profile()) return {.is_unmeasured = !cost.is_measured(), .outliers = {}};
  return {.is_due = cost.is_due(now_s), .outliers = outliers_under(work, cost, device)};
}

std::vector<Need> needs_of(const DeviceSet& set, std::span<const Workload> work, double now_s) {
  std::vector<Need> needs;
  for (std::size_t device = 0; device < set.devices.size(); ++device)
    needs.push_back(need_of(set.costs[device], *set.devices[device], work, now_s));
  return needs;
}

// The factors by which a device may really be slower, or faster, than its costs say.
struct Doubt {
  double slower = 1;
  double faster = 1;
};

Doubt doubt_of(const Need& need, const DeviceInfo& device) {
  if (need.is_due) return {.slower = kMostWrong, .faster = 1 / kMostWrong};
  Doubt doubt;
  if (need.is_unmeasured) doubt = {.slower = 1 + device.prior.uncertainty, .faster = 1 - device.prior.uncertainty};
  for (const Outlier& outlier : need.outliers) {
    doubt.slower = std::clamp(1 / outlier.times_slower, doubt.slower, kMostWrong);
    doubt.faster = std::clamp(1 / outlier.times_slower, 1 / kMostWrong, doubt.faster);
  }
  return doubt;
}

// Forecasts the work if the device with the most of it is so much slower, or faster, than its costs say, all others are
// as fast as theirs allow, and links with doubtful records are as their priors.
Result<Forecast> forecast_otherwise(const MeasuringOptions& options, std::span<const Need> needs, std::size_t most,
                                    double factor) {
  DeviceSet set = options.device_pool.devices();
  std::vector<DeviceCost> costs(set.costs.begin(), set.costs.end());
  for (std::size_t device = 0; device < costs.size(); ++device) {
    costs[device].correct(device == most ? factor : doubt_of(needs[device], set.devices[device]->info()).faster);
    const auto is_link = [](const Outlier& outlier) { return outlier.of == Outlier::Of::link; };
    if (std::ranges::any_of(needs[device].outliers, is_link)) costs[device].forget_links();
  }
  set.costs = costs;
  return options.forecast(set, margin_or_default(options.margin, true));
}

// Estimates the time saved if measured costs replace the priors and the records in doubt. The device with the most work
// turns out as slow as its costs allow, all others as fast, and the work is planned for that instead. A record that is
// too slow can also keep single ops from that device.
Result<double> most_saved_us(const MeasuringOptions& options, std::span<const Need> needs) {
  const DeviceSet set = options.device_pool.devices();
  SHUNT_TRY_ASSIGN(const Forecast believed, options.forecast(set, options.margin));
  const Need& of_most = needs[believed.device];
  const Doubt doubt = doubt_of(of_most, set.devices[believed.device]->info());
  const double worst_us = believed.us * doubt.slower;
  // A record that is only old is taken at its word here, so that it does not hold up every short job.
  const bool is_only_old = of_most.is_due && of_most.outliers.empty() && !set.costs[believed.device].is_doubted();
  if ((is_only_old ? believed.us : worst_us) < kMostSeconds * 1e6) return 0;
  SHUNT_TRY_ASSIGN(const Forecast slow, forecast_otherwise(options, needs, believed.device, doubt.slower));
  if (of_most.outliers.empty()) return worst_us - slow.us;
  SHUNT_TRY_ASSIGN(const Forecast fast, forecast_otherwise(options, needs, believed.device, doubt.faster));
  return std::max(worst_us - slow.us, believed.us - fast.us);
}

struct Found {
  const Device* device = nullptr;
  WatchedProfile measured;
};

// Measures each of `devices`, or checks what `known` has of it, in an equal share of the time left. False: interrupted.
bool measure(const MeasuringOptions& measuring, Devices devices, const Profile& known, std::vector<Found>& found,
             const std::atomic<bool>* interrupted) {
  const Watch& watch = measuring.runtime.options().watch;
  const auto is_interrupted = [&] { return watch.is_interrupted() || (interrupted != nullptr && interrupted->load()); };
  const auto now_s = [&] { return static_cast<double>(devices[0]->now_ns()) / 1e9; };
  const double end_s = now_s() + kSeconds;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    Device& device = *devices[index];
    const double begin_s = now_s();
    const double share_s = (end_s - begin_s) / static_cast<double>(devices.size() - index);
    const auto progress = [&](const std::string&, std::size_t done, std::size_t count) {
      // The number of measurements of the next devices is unknown; assume as many as of this one.
      watch.report(ProgressKind::measuring, index * count + done, devices.size() * count);
      return !is_interrupted();
    };
    const CalibrationOptions options{.peer = peer_of(device, measuring.device_pool.devices().devices),
                                     .progress = progress};
    const DeviceProfile* const before = known.find(device.info());
    const auto left_s = [&] { return share_s - (now_s() - begin_s); };
    auto measured = measure_watched(
        device.info(), measuring.processor_times,
        [&] {
          return before == nullptr ? calibrate_briefly(device, measuring.work, left_s(), options)
                                   : check_briefly(device, measuring.work, left_s(), *before, options);
        },
        [&](const WatchedProfile&) { return left_s() >= share_s / 2 && !is_interrupted(); });
    if (is_interrupted()) return false;
    if (measured) {
      // The next process need not measure again what was unknown a moment ago.
      if (before == nullptr)
        for (const Outlier& outlier : unconfirmed_outliers(measured->profile, device.info()))
          confirm(measured->profile, outlier);
      found.push_back({.device = &device, .measured = *std::move(measured)});
    } else {
      measuring.device_pool.tell(fmt::format("{} cannot be measured: {}", device.info().id, measured.error().message));
    }
  }
  return true;
}

// Saves what was found of a device, and tells the user which records it has corrected. What other programs disturbed
// serves only this process.
void keep(const DevicePool& device_pool, const std::filesystem::path& path, Found found, Profile& profile) {
  DeviceProfile& now = found.measured.profile;
  if (found.measured.is_disturbed()) {
    device_pool.tell(fmt::format("what was measured of {} is not kept: other programs took {:.0f} % of its processors",
                                 now.id, 100 * found.measured.taken));
    profile.set(std::move(now));
    return;
  }
  const auto before = std::ranges::find(profile.devices, now.id, &DeviceProfile::id);
  if (const Status saved = add_to_profile(path, now, before == profile.devices.end() ? nullptr : &*before); !saved)
    device_pool.tell(saved.error().message);
  const DeviceProfile* const valid = profile.find(found.device->info());
  if (const std::string wrong = valid == nullptr ? "" : wrong_records(*valid, now); !wrong.empty())
    device_pool.tell(fmt::format("wrong records of {} are replaced: {}", now.id, wrong));
  profile.set(std::move(now));
}

}  // namespace

Forecast forecast_of(const Plan& plan, double times) {
  std::vector<double> busy_us(plan.devices.size());
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::compute) busy_us[step.device] += step.end_us - step.start_us;
  return {.us = plan.predicted_us * times,
          .device = static_cast<std::size_t>(std::ranges::max_element(busy_us) - busy_us.begin())};
}

bool may_measure(const Runtime& runtime, const DevicePool& device_pool) {
  const DeviceSet set = device_pool.devices();
  const double now_s = unix_seconds();
  const auto may_need = [&](const DeviceCost& cost) {
    return cost.has_profile() ? cost.is_due(now_s) || !cost.unconfirmed().empty() : !cost.is_measured();
  };
  return runtime.options().calibrated && has_choice(set.devices) && std::ranges::any_of(set.costs, may_need);
}

bool pays_to_measure(const MeasuringOptions& options) {
  const std::vector<Need> needs = needs_of(options.device_pool.devices(), options.work, unix_seconds());
  if (std::ranges::none_of(needs, &Need::exists)) return false;
  // If no plan can be made, the first step will report it.
  return most_saved_us(options, needs).value_or(0) >= kMostSeconds * 1e6;
}

std::optional<std::vector<DeviceCost>> measure_briefly(const MeasuringOptions& options,
                                                       const std::atomic<bool>* interrupted) {
  const DevicePool& device_pool = options.device_pool;
  const DeviceSet set = device_pool.devices();
  const auto path = profile_path();
  std::string warning;  // the runtime has reported it
  auto profile = path ? load_profile(*path, warning) : Result<Profile>(std::unexpected(path.error()));
  if (!profile) return std::nullopt;
  const std::vector<Need> needs = needs_of(set, options.work, unix_seconds());
  std::vector<Device*> devices;
  std::vector<std::string> ids;
  for (std::size_t index = 0; index < set.devices.size(); ++index) {
    Device* const device = set.devices[index];
    if (!needs[index].exists()) continue;
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
    trace::Recorder& recorder = opened(options.runtime).recorder();
    const bool is_traced = recorder.enabled();
    recorder.set_enabled(false);
    std::vector<Found> found;
    const bool is_done = measure(options, devices, *profile, found, interrupted);
    recorder.set_enabled(is_traced);
    if (!is_done) return std::nullopt;
    for (Found& each : found) keep(device_pool, *path, std::move(each), *profile);
  }
  std::vector<DeviceCost> costs;
  for (const Device* device : set.devices) {
    costs.emplace_back(device->info(), profile->find(device->info()));
    // The next process checks the outliers that there was no time for.
    costs.back().trust_outliers();
  }
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
