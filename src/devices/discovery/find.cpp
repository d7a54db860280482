#include "devices/discovery/find.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "devices/discovery/known_apis.h"
#include "devices/discovery/probe.h"
#include "devices/identity.h"

namespace shunt {
namespace {

constexpr std::chrono::seconds kProbePatience{5};

bool offers_a_gpu(const ApiReport& report) {
  return std::ranges::any_of(report.devices, [](const DeviceInfo& device) { return !device.emulated; });
}

std::string group_of(const struct stat& file) {
  std::array<char, 4096> space{};
  group row{};
  group* found = nullptr;
  if (getgrgid_r(file.st_gid, &row, space.data(), space.size(), &found) != 0 || found == nullptr)
    return std::to_string(file.st_gid);
  return found->gr_name;
}

// Starts all of them. APIs that may crash or hang run in child processes, and their reports are kept.
std::vector<ApiReport> start(std::span<const ApiRow* const> apis, const FindOptions& options, const KnownApis& known) {
  const std::vector<const ApiRow*> apart = to_probe(apis);
  std::vector<ApiReport> reports;
  for (const ApiRow* api : apis)
    if (std::ranges::find(apart, api) == apart.end())
      reports.push_back(
          start_here(*api, {.devices = options.simulated, .threads = options.threads, .pin_to_cpus = {}, .known = {}}));
  if (apart.empty()) return reports;
  std::vector<ProbedApi> found = probe(apart, kProbePatience);
  // A report that cannot be kept is found again next time, at the same cost.
  [[maybe_unused]] const Status kept = known.keep(found);
  for (ProbedApi& each : found) reports.push_back(std::move(each.report));
  return reports;
}

// Returns what would help this API to offer a GPU; empty if nothing was found.
std::string hint_for(const ApiRow& api, const ApiReport& report) {
  return offers_a_gpu(report) ? std::string() : access_hint(names_in(api.files));
}

}  // namespace

std::string access_hint(std::span<const std::string_view> files) {
  for (const std::string_view name : files) {
    const std::string file(name);
    struct stat found{};
    if (stat(file.c_str(), &found) != 0 || access(file.c_str(), R_OK | W_OK) == 0) continue;
    const std::string group = group_of(found);
    return fmt::format("you may not open {}: add yourself to group {} (sudo usermod -aG {} $USER) and log in again",
                       file, group, group);
  }
  return {};
}

std::vector<ApiReport> reports_of(std::span<const ApiRow* const> apis, const FindOptions& options) {
  if (apis.empty()) return {};
  const KnownApis known;
  std::vector<ApiReport> reports(apis.size());
  std::vector<const ApiRow*> unknown;
  for (std::size_t i = 0; i < apis.size(); ++i) {
    std::optional<ApiReport> report = options.again ? std::nullopt : known.find(*apis[i]);
    if (report)
      reports[i] = std::move(*report);
    else
      unknown.push_back(apis[i]);
    reports[i].api = apis[i]->name;
  }
  for (const ApiReport& started : start(unknown, options, known))
    for (ApiReport& report : reports)
      if (report.api == started.api) report = started;
  std::vector<DeviceInfo> before;
  for (std::size_t i = 0; i < apis.size(); ++i) {
    ApiReport& report = reports[i];
    for (DeviceInfo& device : report.devices)
      if (!device.emulated) identify(device, before);
    before.insert(before.end(), report.devices.begin(), report.devices.end());
    const std::string hint = hint_for(*apis[i], report);
    if (hint.empty()) continue;
    if (report.devices.empty())
      report.reason += "; " + hint;
    else
      report.hint = hint;
  }
  drop_hidden(reports);
  return reports;
}

}  // namespace shunt
