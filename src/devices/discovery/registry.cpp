#include "devices/discovery/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/nearest.h"
#include "devices/discovery/find.h"
#include "devices/faulty.h"

namespace shunt {
namespace {

const ApiRow* row_of(std::string_view api) {
  const auto row = std::ranges::find(api_rows(), api, &ApiRow::name);
  return row == api_rows().end() ? nullptr : &*row;
}

// Errors: invalid for a name that begins with no API's name; the message lists what there is.
Status check_names(std::string_view list) {
  for (const std::string_view name : names_in(list)) {
    if (row_of(api_of(name)) != nullptr) continue;
    std::vector<std::string> ids;
    for (const ApiReport& report : find_devices())
      for (const DeviceInfo& device : report.devices) ids.push_back(device.id);
    return unknown_device(name, ids);
  }
  return {};
}

// Returns the APIs that a list names; all if it is empty.
std::vector<const ApiRow*> apis_in(std::string_view list) {
  const std::vector<std::string_view> names = names_in(list);
  std::vector<const ApiRow*> apis;
  for (const ApiRow& api : api_rows())
    if (names.empty() || std::ranges::find(names, api.name, api_of) != names.end()) apis.push_back(&api);
  return apis;
}

// An API that was not measured may serve a GPU as a spare if it should take at most so many times the least time.
constexpr double kSpareTimes = 2;

// The devices that an empty list means: the processor's, and for each GPU those of the API predicted to be fastest
// there. Emulated devices must be named.
class Unnamed {
 public:
  // `reports`: in the table's order; the first wins among equals.
  Unnamed(std::span<const ApiReport> reports, const PredictedUs& predicted_us) : predicted_us_(predicted_us) {
    for (const ApiReport& report : reports)
      for (const DeviceInfo& device : report.devices) {
        if (device.emulated) continue;
        const double us = predicted_us && !device.is_host_cpu() ? predicted_us(device) : 0;
        const Owner its{std::string(api_of(device.id)), us};
        const auto [owner, is_new] = owners_.try_emplace(device.compute_resource, its);
        if (!is_new && us < owner->second.us) owner->second = its;
      }
  }

  [[nodiscard]] bool takes(const DeviceInfo& device) const {
    const auto owner = owners_.find(device.compute_resource);
    return !device.emulated && owner != owners_.end() && owner->second.api == api_of(device.id);
  }
  // Returns whether the device is a GPU that is taken through another API, and may do some work faster.
  [[nodiscard]] bool spares(const DeviceInfo& device, const IsMeasured& is_measured) const {
    if (!is_measured || device.emulated || device.is_host_cpu() || takes(device)) return false;
    return is_measured(device) || predicted_us_(device) <= kSpareTimes * owners_.at(device.compute_resource).us;
  }

 private:
  struct Owner {
    std::string api;
    double us;
  };
  const PredictedUs& predicted_us_;
  std::map<std::string, Owner> owners_;  // by compute resource
};

// Returns the APIs whose devices an empty list means, and those of spare devices.
std::set<std::string, std::less<>> unnamed_apis(std::span<const ApiReport> reports, const PredictedUs& predicted_us,
                                                const IsMeasured& is_measured) {
  std::set<std::string, std::less<>> apis;
  const Unnamed unnamed(reports, predicted_us);
  for (const ApiReport& report : reports)
    for (const DeviceInfo& device : report.devices)
      if (unnamed.takes(device) || unnamed.spares(device, is_measured)) apis.insert(report.api);
  return apis;
}

// Returns why a name means no device of the registry.
std::unexpected<Error> nothing_named(const Registry& registry, std::string_view name) {
  std::vector<std::string> ids;
  for (const ApiReport& report : registry.reports()) {
    if (report.api == name)
      if (std::string why = only_emulated(name, report.devices); !why.empty())
        return fail(Code::unsupported, std::move(why));
    if (report.api == api_of(name) && report.devices.empty())
      return fail(Code::unsupported, fmt::format("device \"{}\" is absent: {}", name, report.reason));
    for (const DeviceInfo& device : report.devices) ids.push_back(device.id);
  }
  return unknown_device(name, ids);
}

// Opens the API and drops the devices that its report lacks: the environment hides them.
Result<BackendReport> open(const ApiRow& api, const ApiReport& report, const OpenOptions& options) {
  SHUNT_TRY_ASSIGN(BackendReport opened, api.start(options));
  if (opened.devices.empty()) return opened;
  std::erase_if(opened.devices, [&](const auto& device) {
    return std::ranges::find(report.devices, device->info().id, &DeviceInfo::id) == report.devices.end();
  });
  if (opened.devices.empty()) opened.stop(StartStage::no_device, report.reason);
  return opened;
}

// Starts only the simulating API.
Result<Registry> open_machine(const OpenOptions& options) {
  Registry registry;
  for (const ApiRow& api : api_rows()) {
    BackendReport& backend = registry.backends.emplace_back(BackendReport{.api = std::string(api.name), .devices = {}});
    if (api.open == open_sim) {
      SHUNT_TRY_ASSIGN(backend, api.start(options));
    } else {
      backend.stop(StartStage::not_asked, fmt::format("the machine is the one described in {}", options.machine));
    }
  }
  return registry;
}

}  // namespace

std::span<const ApiRow> api_rows() {
  static constexpr ApiRow kRows[] = {
#define SHUNT_BACKEND(api, ...) {.name = #api, .open = open_##api __VA_OPT__(, ) __VA_ARGS__},
#include "devices/backends.def"
  };
  return kRows;
}

Result<BackendReport> ApiRow::start(const OpenOptions& options) const {
  SHUNT_TRY_ASSIGN(BackendReport report, open(options));
  // Simulated devices inject their faults themselves.
  if (options.faults.empty() || open == open_sim) return report;
  for (std::unique_ptr<Device>& device : report.devices) {
    const auto faults = options.faults.find(device->info().id);
    device = make_faulty(std::move(device), faults == options.faults.end() ? nullptr : faults->second);
  }
  return report;
}

Result<std::unique_ptr<Device>> reopen_device(const ApiRow& api, const Device& lost, const OpenOptions& options) {
  const std::string& id = lost.info().id;
  OpenOptions its_options = options;
  its_options.devices = id;
  its_options.machine = {};
  its_options.in_place_of = &lost;
  SHUNT_TRY_ASSIGN(BackendReport report, api.start(its_options));
  for (std::unique_ptr<Device>& device : report.devices)
    if (device->info().id == id) return std::move(device);
  return fail(Code::unsupported, report.absent_because.empty() ? "it is no longer there" : report.absent_because);
}

Status check_faults(const FaultTable& faults, std::span<Device* const> devices) {
  for (const auto& [id, count] : faults)
    if (std::ranges::none_of(devices, [&](const Device* device) { return device->info().id == id; }))
      return fail(Code::invalid, fmt::format("a fault names \"{}\", which is not among the devices in use", id));
  return {};
}

std::string_view api_of(std::string_view device) { return device.substr(0, device.find(':')); }

std::vector<DeviceInfo> devices_of_others(std::span<const ApiReport> found, std::string_view api) {
  std::vector<DeviceInfo> others;
  for (const ApiReport& report : found)
    if (report.api != api) others.insert(others.end(), report.devices.begin(), report.devices.end());
  return others;
}

std::vector<ApiReport> find_devices(const FindOptions& options) {
  std::vector<const ApiRow*> apis;
  for (const ApiRow& api : api_rows()) apis.push_back(&api);
  return reports_of(apis, options);
}

std::vector<Device*> Registry::devices() const {
  std::vector<Device*> all;
  for (const BackendReport& backend : backends)
    for (const auto& device : backend.devices) all.push_back(device.get());
  return all;
}

std::vector<ApiReport> Registry::reports() const {
  std::vector<ApiReport> reports;
  for (const BackendReport& backend : backends) {
    ApiReport& report = reports.emplace_back(
        ApiReport{.api = backend.api, .stage = backend.stage, .reason = backend.absent_because, .devices = {}});
    for (const auto& device : backend.devices) report.devices.push_back(device->info());
  }
  return reports;
}

std::unexpected<Error> unknown_device(std::string_view name, std::span<const std::string> ids) {
  return fail(Code::invalid, fmt::format("unknown device \"{}\"{}; choose from: {}", name, did_you_mean(name, ids),
                                         fmt::join(ids, " ")));
}

Result<Registry> open_devices(const OpenOptions& options, const IsMeasured& is_measured) {
  if (!options.machine.empty()) return open_machine(options);
  SHUNT_TRY(check_names(options.devices));
  const std::vector<const ApiRow*> wanted = apis_in(options.devices);
  // APIs without a library start here safely, so they need no report.
  std::vector<const ApiRow*> apart;
  for (const ApiRow* api : wanted)
    if (!api->library.empty()) apart.push_back(api);
  const std::vector<ApiReport> reports = reports_of(apart, {});
  const std::set<std::string, std::less<>> unnamed = unnamed_apis(reports, options.predicted_us, is_measured);

  Registry registry;
  for (const ApiRow& api : api_rows()) {
    BackendReport& backend = registry.backends.emplace_back(BackendReport{.api = std::string(api.name), .devices = {}});
    const auto report = std::ranges::find(reports, api.name, &ApiReport::api);
    OpenOptions its_options = options;
    const std::vector<DeviceInfo> of_others = devices_of_others(reports, api.name);
    its_options.known = of_others;
    if (std::ranges::find(wanted, &api) == wanted.end()) {
      backend.stop(StartStage::not_asked, "it was not asked for; name it with --devices to use it");
    } else if (report == reports.end()) {
      SHUNT_TRY_ASSIGN(backend, api.start(its_options));
    } else if (report->devices.empty()) {
      backend.stop(report->stage, report->reason);
    } else if (options.devices.empty() && !unnamed.contains(api.name)) {
      backend.stop(StartStage::not_asked,
                   "its devices are emulated or already in use; name them with --devices to use them");
    } else {
      SHUNT_TRY_ASSIGN(backend, open(api, *report, its_options));
    }
  }
  return registry;
}

bool is_meant(const DeviceInfo& device, std::string_view api, std::string_view name) {
  return device.id == name || (api == name && !device.emulated);
}

std::string only_emulated(std::string_view api, std::span<const DeviceInfo> devices) {
  if (devices.empty() || !std::ranges::all_of(devices, &DeviceInfo::emulated)) return {};
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices) names.push_back(fmt::format("{} ({})", device.id, device.name));
  return fmt::format("{} has only emulated devices here, which are used only if named by id: {}", api,
                     fmt::join(names, ", "));
}

Result<std::vector<Device*>> select_devices(const Registry& registry, std::string_view list,
                                            const PredictedUs& predicted_us) {
  std::vector<Device*> chosen;
  const auto choose_all = [&](const auto& is_wanted) {
    bool is_there = false;
    for (const BackendReport& backend : registry.backends)
      for (const auto& device : backend.devices) {
        if (!is_wanted(backend.api, device->info())) continue;
        is_there = true;
        if (std::ranges::find(chosen, device.get()) == chosen.end()) chosen.push_back(device.get());
      }
    return is_there;
  };
  if (list.empty()) {
    const Unnamed unnamed(registry.reports(), predicted_us);
    choose_all([&](std::string_view, const DeviceInfo& device) { return unnamed.takes(device); });
    return chosen;
  }
  for (const std::string_view name : names_in(list))
    if (!choose_all([&](std::string_view api, const DeviceInfo& device) { return is_meant(device, api, name); }))
      return nothing_named(registry, name);
  return chosen;
}

std::vector<Device*> spare_devices(const Registry& registry, const PredictedUs& predicted_us,
                                   const IsMeasured& is_measured) {
  const Unnamed unnamed(registry.reports(), predicted_us);
  std::vector<Device*> spares;
  for (Device* device : registry.devices())
    if (unnamed.spares(device->info(), is_measured)) spares.push_back(device);
  return spares;
}

}  // namespace shunt
