#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "devices/discovery/find.h"

namespace shunt {
namespace {

// Returns the first of the API's variables that is set, as NAME=VALUE; empty if none is.
std::string setting_of(const ApiRow& api) {
  for (const std::string_view name : names_in(api.hidden_by))
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
    if (const char* value = std::getenv(std::string(name).c_str()); value != nullptr)
      return fmt::format("{}={}", name, value);
  return {};
}

// Returns whether the setting hides every device.
bool hides_all(std::string_view setting) {
  const std::string_view value = setting.substr(setting.find('=') + 1);
  return value.empty() || value == "-1" || value == "NoDevFiles";
}

}  // namespace

void drop_hidden(std::span<ApiReport> reports) {
  for (const ApiRow& api : api_rows()) {
    const std::string setting = setting_of(api);
    if (setting.empty()) continue;
    const auto own = std::ranges::find(reports, api.name, &ApiReport::api);
    // If the vendor's own API reports nothing, only a setting that hides all devices can be followed.
    if ((own == reports.end() || own->devices.empty()) && !hides_all(setting)) continue;
    const auto is_hidden = [&](const DeviceInfo& device) {
      if (device.emulated || !device.hardware.starts_with(api.vendor)) return false;
      return own == reports.end() || std::ranges::find(own->devices, device.compute_resource,
                                                       &DeviceInfo::compute_resource) == own->devices.end();
    };
    for (ApiReport& report : reports) {
      if (report.api == api.name || std::erase_if(report.devices, is_hidden) == 0) continue;
      report.hint = fmt::format("{} hides devices here too", setting);
      if (!report.devices.empty()) continue;
      report.stage = StartStage::no_device;
      report.reason = std::exchange(report.hint, {});
    }
  }
}

}  // namespace shunt
