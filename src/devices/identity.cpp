#include "devices/identity.h"

#include <algorithm>

namespace shunt {
namespace {

// Returns whether both values are known and equal.
bool is_same(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

// Some APIs append more to the name.
bool is_same_name(const DeviceInfo& a, const DeviceInfo& b) {
  return !a.name.empty() && !b.name.empty() && (a.name.contains(b.name) || b.name.contains(a.name));
}

// Returns the device known to be the same hardware; null if there is none, or more than one could be.
const DeviceInfo* find_same(const DeviceInfo& info, std::span<const DeviceInfo> known) {
  const auto only = [&](const auto& matches) -> const DeviceInfo* {
    const DeviceInfo* found = nullptr;
    for (const DeviceInfo& each : known) {
      if (each.emulated || each.is_host_cpu() || !matches(each)) continue;
      if (found != nullptr && found->compute_resource != each.compute_resource) return nullptr;
      if (found == nullptr) found = &each;
    }
    return found;
  };
  if (!info.pci_address.empty())
    if (const auto* same = only([&](const DeviceInfo& each) { return each.pci_address == info.pci_address; }))
      return same;
  if (!info.uuid.empty())
    if (const auto* same = only([&](const DeviceInfo& each) { return each.uuid == info.uuid; })) return same;
  if (!info.pci_address.empty() || !info.uuid.empty()) return nullptr;
  if (!info.hardware.empty())
    return only([&](const DeviceInfo& each) { return is_same(each.hardware, info.hardware); });
  return only([&](const DeviceInfo& each) { return is_same_name(each, info); });
}

void fill(std::string& mine, const std::string& known) {
  if (mine.empty()) mine = known;
}

}  // namespace

void identify(DeviceInfo& info, std::span<const DeviceInfo> known) {
  fill(info.memory_pool, info.id);
  if (info.emulated || info.is_host_cpu()) {
    info.compute_resource = "cpu";
    info.memory_resource = "host";
    return;
  }
  if (const DeviceInfo* same = find_same(info, known); same != nullptr) {
    fill(info.pci_address, same->pci_address);
    fill(info.uuid, same->uuid);
    fill(info.hardware, same->hardware);
    info.compute_resource = same->compute_resource;
    info.memory_resource = same->memory_resource;
    if (info.memory_bytes == 0) info.memory_bytes = same->memory_bytes;
    return;
  }
  const std::string& own = !info.pci_address.empty() ? info.pci_address : !info.uuid.empty() ? info.uuid : info.id;
  info.compute_resource = "gpu:" + own;
  info.memory_resource = info.features.contains(DeviceFeature::unified_memory) ? "host" : info.compute_resource;
}

}  // namespace shunt
