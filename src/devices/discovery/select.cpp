#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "devices/discovery/find.h"
#include "devices/discovery/registry.h"

namespace shunt {
namespace {

class Selection {
 public:
  Selection(const DeviceSelector& selector, std::span<const ApiReport> found) : selector_(selector), found_(found) {}

  Status follow_chain() {
    for (const DeviceCandidate& candidate : selector_.chain) SHUNT_TRY(follow(candidate));
    return {};
  }

  void add_others() {
    std::vector<const DeviceInfo*> others;
    for (const ApiReport& report : found_)
      for (const DeviceInfo& device : report.devices)
        if (!device.emulated) others.push_back(&device);
    std::ranges::stable_sort(others, [this](const DeviceInfo* a, const DeviceInfo* b) { return rank(*a) > rank(*b); });
    for (const DeviceInfo* device : others) {
      if (device->is_host_cpu() && selector_.without_cpu)
        reject(device->id, "the selector excludes the processor");
      else
        consider(*device, nullptr);
    }
  }

  Result<DeviceSelection> done() && {
    while (selection_.devices.size() > selector_.most) {
      reject(selection_.devices.back().id, fmt::format("{} others are preferred", selector_.most));
      selection_.devices.pop_back();
    }
    if (!selection_.devices.empty()) return std::move(selection_);
    std::string reasons;
    for (const DeviceRejection& rejection : selection_.rejections)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", rejection.id, rejection.reason);
    return fail(Code::unsupported, fmt::format("no device meets the requirements ({})", reasons));
  }

 private:
  // Puts the processor last, then orders by preference.
  using Rank = std::tuple<bool, bool, double>;
  [[nodiscard]] Rank rank(const DeviceInfo& device) const {
    const double score = selector_.score ? selector_.score(device) : device.prior.flops_per_s;
    return {!device.is_host_cpu(), selector_.prefers_discrete && device.type == DeviceType::discrete, score};
  }

  Status follow(const DeviceCandidate& candidate) {
    const auto has_it = [&](const ApiReport& api) {
      return std::ranges::find(api.devices, candidate.name, &DeviceInfo::id) != api.devices.end();
    };
    // The devices of a simulated machine may have any names.
    auto report = std::ranges::find_if(found_, has_it);
    if (report == found_.end()) report = std::ranges::find(found_, api_of(candidate.name), &ApiReport::api);
    if (report == found_.end()) return unknown(candidate.name);
    if (report->devices.empty()) {
      reject(candidate.name, report->reason);
      return {};
    }
    bool is_there = false;
    for (const DeviceInfo& device : report->devices)
      if (is_meant(device, report->api, candidate.name)) {
        is_there = true;
        consider(device, &candidate);
      }
    if (is_there) return {};
    if (candidate.name != report->api) return unknown(candidate.name);
    reject(candidate.name, only_emulated(report->api, report->devices));
    return {};
  }

  [[nodiscard]] Status unknown(std::string_view name) const {
    std::vector<std::string> ids;
    for (const ApiReport& report : found_)
      for (const DeviceInfo& device : report.devices) ids.push_back(device.id);
    return unknown_device(name, ids);
  }

  // Takes the device if it meets the requirements. `candidate`: the entry that names it; null if none does.
  void consider(const DeviceInfo& device, const DeviceCandidate* candidate) {
    if (std::ranges::find(selection_.devices, device.id, &DeviceInfo::id) != selection_.devices.end()) return;
    std::string refusal = selector_.requirements.refusal(device);
    if (refusal.empty() && candidate != nullptr) refusal = candidate->requirements.refusal(device);
    if (!refusal.empty()) return reject(device.id, std::move(refusal));
    // An emulated GPU computes on the processor, so it replaces no other device.
    const auto same = std::ranges::find_if(selection_.devices, [&](const DeviceInfo& taken) {
      return taken.compute_resource == device.compute_resource && api_of(taken.id) != api_of(device.id) &&
             !taken.emulated;
    });
    if (candidate == nullptr && same != selection_.devices.end())
      return reject(device.id, fmt::format("it is the same processor as {}", same->id));
    selection_.devices.push_back(device);
  }

  void reject(std::string id, std::string reason) {
    selection_.rejections.push_back({std::move(id), std::move(reason)});
  }

  const DeviceSelector& selector_;
  std::span<const ApiReport> found_;
  DeviceSelection selection_;
};

}  // namespace

Result<DeviceSelection> select(const DeviceSelector& selector, std::span<const ApiReport> found) {
  Selection choice(selector, found);
  SHUNT_TRY(choice.follow_chain());
  if (!selector.only_chain) choice.add_others();
  return std::move(choice).done();
}

namespace {

// Returns the device with that id, starting its API first if needed. Errors: why there is none.
Result<Device*> start(const std::string& id, std::span<const ApiReport> found, const OpenOptions& options,
                      Registry& registry) {
  auto opened = std::ranges::find(registry.backends, api_of(id), &BackendReport::api);
  if (opened == registry.backends.end()) {
    const std::vector<DeviceInfo> others = devices_of_others(found, api_of(id));
    OpenOptions its_options = options;
    its_options.devices = id;
    its_options.known = others;
    const auto api = std::ranges::find(api_rows(), api_of(id), &ApiRow::name);
    SHUNT_TRY_ASSIGN(BackendReport backend, api->start(its_options));
    opened = registry.backends.insert(registry.backends.end(), std::move(backend));
  }
  for (const auto& device : opened->devices)
    if (device->info().id == id) return device.get();
  return fail(Code::unsupported, opened->absent_because.empty() ? "it is no longer there" : opened->absent_because);
}

// Starting simulated devices costs nothing.
Result<Selected> open_simulated(const DeviceSelector& selector, const OpenOptions& options) {
  Selected selected;
  SHUNT_TRY_ASSIGN(selected.registry, open_devices(options));
  SHUNT_TRY_ASSIGN(DeviceSelection selection, select(selector, selected.registry.reports()));
  selected.rejections = std::move(selection.rejections);
  for (const DeviceInfo& wanted : selection.devices)
    for (Device* device : selected.registry.devices())
      if (device->info().id == wanted.id) selected.devices.push_back(device);
  return selected;
}

// Acts as if the failed device had not been found: the same processor may now be taken through another API.
void drop(const DeviceRejection& failed, std::span<ApiReport> found) {
  const auto report = std::ranges::find(found, api_of(failed.id), &ApiReport::api);
  report->reason = failed.reason;
  std::erase_if(report->devices, [&](const DeviceInfo& each) { return each.id == failed.id; });
}

}  // namespace

Result<Selected> open_selected(const DeviceSelector& selector, const OpenOptions& options) {
  if (!options.machine.empty()) return open_simulated(selector, options);
  std::string names;
  for (const DeviceCandidate& candidate : selector.chain) names += candidate.name + ",";
  std::vector<ApiReport> found = find_devices({.threads = options.threads, .simulated = names});
  Selected selected;
  std::vector<DeviceRejection> failures;
  while (true) {
    SHUNT_TRY_ASSIGN(DeviceSelection selection, select(selector, found));
    selected.devices.clear();
    selected.rejections = std::move(selection.rejections);
    for (const DeviceInfo& wanted : selection.devices) {
      const auto device = start(wanted.id, found, options, selected.registry);
      if (!device) {
        failures.push_back({wanted.id, fmt::format("it did not start: {}", device.error().message)});
        break;
      }
      selected.devices.push_back(*device);
    }
    if (selected.devices.size() == selection.devices.size()) break;
    drop(failures.back(), found);
  }
  selected.rejections.insert(selected.rejections.end(), failures.begin(), failures.end());
  return selected;
}

}  // namespace shunt
