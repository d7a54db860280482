#include "devices/find.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "devices/identity.h"
#include "devices/known_apis.h"
#include "devices/probe.h"

namespace shunt {
namespace {

constexpr std::chrono::seconds kPatience{5};

// The files that a user must be able to open for it.
std::span<const char* const> files_of(std::string_view api) {
  static constexpr const char* kNvidia[] = {"/dev/nvidiactl", "/dev/nvidia0"};
  static constexpr const char* kAmd[] = {"/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"};
  static constexpr const char* kAny[] = {"/dev/dri/renderD128", "/dev/dri/renderD129"};
  if (api == "cuda") return kNvidia;
  if (api == "hip") return kAmd;
  return kAny;
}

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

// Starts in other processes what may do harm and is not known yet.
void start_apart(std::span<const ApiRow* const> apis, std::span<ApiReport> reports) {
  const std::vector<ProbedApi> found = probe(apis, kPatience);
  // What cannot be kept is found again the next time, at the same cost.
  [[maybe_unused]] const Status kept = keep_reports(found);
  for (const ProbedApi& each : found)
    for (ApiReport& report : reports)
      if (report.api == each.report.api) report = each.report;
}

}  // namespace

std::string access_hint(std::span<const char* const> files) {
  for (const char* file : files) {
    struct stat found{};
    if (stat(file, &found) != 0 || access(file, R_OK | W_OK) == 0) continue;
    const std::string group = group_of(found);
    return fmt::format("you may not open {}: add yourself to group {} (sudo usermod -aG {} $USER) and log in again",
                       file, group, group);
  }
  return {};
}

std::vector<ApiReport> reports_of(std::span<const ApiRow* const> apis, const FindOptions& options) {
  std::vector<ApiReport> reports(apis.size());
  std::vector<std::optional<ApiReport>> known(apis.size());
  if (!options.again) known = known_reports(apis);
  std::vector<const ApiRow*> apart;
  for (std::size_t i = 0; i < apis.size(); ++i) {
    reports[i].api = apis[i]->name;
    if (known[i])
      reports[i] = *known[i];
    else if (apis[i]->library.empty() || is_loaded(*apis[i]))
      reports[i] = start_here(
          *apis[i], {.devices = options.simulated, .threads = options.threads, .pin_to_cpus = {}, .known = {}});
    else
      apart.push_back(apis[i]);
  }
  if (!apart.empty()) start_apart(apart, reports);
  std::vector<DeviceInfo> before;
  for (ApiReport& report : reports) {
    for (DeviceInfo& device : report.devices)
      if (!device.emulated) identify(device, before);
    before.insert(before.end(), report.devices.begin(), report.devices.end());
    const std::string hint =
        offers_a_gpu(report) || report.api == "cpu" ? std::string() : access_hint(files_of(report.api));
    if (hint.empty()) continue;
    if (report.devices.empty())
      report.reason += "; " + hint;
    else
      report.hint = hint;
  }
  drop_hidden(reports);
  return reports;
}

std::vector<ApiReport> find_devices(const FindOptions& options) {
  std::vector<const ApiRow*> apis;
  for (const ApiRow& api : api_rows()) apis.push_back(&api);
  return reports_of(apis, options);
}

}  // namespace shunt
