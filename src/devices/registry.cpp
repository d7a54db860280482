#include "devices/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt {
namespace {

std::string_view without_spaces_around(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::string_view name_of(DeviceType type) {
  constexpr std::string_view kNames[] = {
#define SHUNT_DEVICE_TYPE(type, name) name,
      SHUNT_DEVICE_TYPES(SHUNT_DEVICE_TYPE)
#undef SHUNT_DEVICE_TYPE
  };
  return kNames[static_cast<std::size_t>(type)];
}

Result<Registry> open_devices(const OpenOptions& options) {
  Registry registry;
#define SHUNT_BACKEND(name)                                       \
  {                                                               \
    SHUNT_TRY_ASSIGN(BackendReport report, open_##name(options)); \
    registry.backends.push_back(std::move(report));               \
  }
#include "devices/backends.def"
  return registry;
}

std::vector<Device*> Registry::devices() const {
  std::vector<Device*> all;
  for (const BackendReport& backend : backends)
    for (const auto& device : backend.devices) all.push_back(device.get());
  return all;
}

Result<std::vector<Device*>> select_devices(const Registry& registry, std::string_view list) {
  std::vector<Device*> chosen;
  const auto choose = [&](Device* device) {
    if (std::ranges::find(chosen, device) == chosen.end()) chosen.push_back(device);
  };
  if (list.empty()) {
    for (Device* device : registry.devices())
      if (!device->info().emulated) choose(device);
    return chosen;
  }
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const std::string_view name = without_spaces_around(item);
    bool known = false;
    for (const BackendReport& backend : registry.backends)
      for (const auto& device : backend.devices)
        if (device->info().id == name || backend.api == name) {
          choose(device.get());
          known = true;
        }
    if (known) continue;
    std::string ids;
    for (const Device* device : registry.devices()) ids += " " + device->info().id;
    for (const BackendReport& backend : registry.backends)
      if (backend.api == name && backend.devices.empty())
        return fail(Code::unsupported, fmt::format("device \"{}\" is absent: {}", name, backend.absent_because));
    return fail(Code::invalid, fmt::format("unknown device \"{}\"; there are:{}", name, ids));
  }
  return chosen;
}

}  // namespace shunt
