#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "devices/find.h"

namespace shunt {
namespace {

// A vendor's variables, the API that reads them, and how its hardware numbers begin.
struct VendorRow {
  std::string_view api;
  std::string_view hardware;
  std::initializer_list<const char*> variables;
};
constexpr std::initializer_list<const char*> kNvidiaVariables = {"CUDA_VISIBLE_DEVICES"};
constexpr std::initializer_list<const char*> kAmdVariables = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                                              "GPU_DEVICE_ORDINAL"};
constexpr VendorRow kVendors[] = {{"cuda", "10de:", kNvidiaVariables}, {"hip", "1002:", kAmdVariables}};

// The first of them that is set, as NAME=VALUE; empty: none.
std::string setting_of(const VendorRow& vendor) {
  for (const char* name : vendor.variables)
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
    if (const char* value = std::getenv(name); value != nullptr) return fmt::format("{}={}", name, value);
  return {};
}

// Whether the setting hides every device, whatever there is.
bool hides_all(std::string_view setting) {
  const std::string_view value = setting.substr(setting.find('=') + 1);
  return value.empty() || value == "-1" || value == "NoDevFiles";
}

}  // namespace

void drop_hidden(std::span<ApiReport> reports) {
  for (const VendorRow& vendor : kVendors) {
    const std::string setting = setting_of(vendor);
    if (setting.empty()) continue;
    const auto own = std::ranges::find(reports, vendor.api, &ApiReport::api);
    // Where the vendor's own API tells nothing, only a setting that hides all can be followed.
    if ((own == reports.end() || own->devices.empty()) && !hides_all(setting)) continue;
    const auto is_hidden = [&](const DeviceInfo& device) {
      if (device.emulated || !device.hardware.starts_with(vendor.hardware)) return false;
      return own == reports.end() || std::ranges::find(own->devices, device.compute_resource,
                                                       &DeviceInfo::compute_resource) == own->devices.end();
    };
    for (ApiReport& report : reports) {
      if (report.api == vendor.api || std::erase_if(report.devices, is_hidden) == 0) continue;
      report.hint = fmt::format("{} hides devices here too", setting);
      if (!report.devices.empty()) continue;
      report.stage = StartStage::no_device;
      report.reason = std::exchange(report.hint, {});
    }
  }
}

}  // namespace shunt
