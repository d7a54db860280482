#include "devices/discovery/rejections.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt {
namespace {

std::string reason_for(const DeviceInfo& device, std::span<const DeviceInfo> in_use) {
  const auto same = std::ranges::find(in_use, device.compute_resource, &DeviceInfo::compute_resource);
  if (device.emulated) return "it is emulated on the processor, and is used only if named by id";
  if (same != in_use.end()) return fmt::format("it is the same processor as {}", same->id);
  return "it was not asked for";
}

}  // namespace

std::vector<DeviceRejection> rejections_of(std::span<const ApiReport> opened, std::span<const DeviceInfo> in_use) {
  std::vector<DeviceRejection> left_out;
  for (const ApiReport& api : opened) {
    if (api.devices.empty()) left_out.push_back({.id = api.api, .reason = api.reason});
    for (const DeviceInfo& device : api.devices)
      if (std::ranges::find(in_use, device.id, &DeviceInfo::id) == in_use.end())
        left_out.push_back({.id = device.id, .reason = reason_for(device, in_use)});
  }
  return left_out;
}

}  // namespace shunt
