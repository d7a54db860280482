#include <chrono>

#include "devices/discovery/probe.h"

namespace shunt {

ApiReport start_here(const ApiRow& api, const OpenOptions& options) {
  ApiReport report{.api = std::string(api.name)};
  const auto begin = std::chrono::steady_clock::now();
  const auto opened = api.open(options);
  report.start_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (!opened) {
    report.stage = StartStage::no_start;
    report.reason = opened.error().message;
    return report;
  }
  report.stage = opened->devices.empty() ? opened->stage : StartStage::started;
  if (opened->devices.empty()) report.reason = opened->absent_because;
  for (const auto& device : opened->devices) report.devices.push_back(device->info());
  return report;
}

}  // namespace shunt
