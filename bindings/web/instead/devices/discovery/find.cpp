// The browser contains hangs and crashes itself, so APIs start directly, and nothing is kept.
#include "devices/discovery/find.h"

#include <algorithm>

#include "devices/cpu/memory.h"
#include "devices/discovery/probe.h"

namespace shunt {

std::vector<ApiReport> reports_of(std::span<const ApiRow* const> apis, const FindOptions& options) {
  std::vector<ApiReport> reports;
  for (const ApiRow* api : apis)
    reports.push_back(
        start_here(*api, {.devices = options.simulated, .threads = options.threads, .pin_to_cpus = {}, .known = {}}));
  return reports;
}

std::map<std::string, std::uint64_t> free_memory(std::span<const DeviceInfo> devices) {
  const auto bytes = cpu::available_memory();
  if (!bytes || std::ranges::find(devices, "host", &DeviceInfo::memory_resource) == devices.end()) return {};
  return {{"host", *bytes}};
}

}  // namespace shunt
