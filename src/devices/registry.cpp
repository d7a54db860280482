#include "devices/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt {
namespace {

std::string_view without_spaces_around(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// Takes the next name from a comma-separated list.
std::string_view take_name(std::string_view& list) {
  const std::string_view item = list.substr(0, list.find(','));
  list.remove_prefix(std::min(item.size() + 1, list.size()));
  return without_spaces_around(item);
}

std::string_view api_of(std::string_view device) { return device.substr(0, device.find(':')); }

constexpr std::string_view kApis[] = {
#define SHUNT_BACKEND(name) #name,
#include "devices/backends.def"
};

// A list with a name that no API has counts as an empty one, so that the message can say what there is.
bool is_wanted(std::string_view api, bool only_if_named, const OpenOptions& options) {
  std::string_view list = options.devices;
  bool wanted = options.every_api || (list.empty() && !only_if_named);
  while (!list.empty()) {
    const std::string_view named = api_of(take_name(list));
    const bool is_unknown = std::ranges::find(kApis, named) == std::end(kApis);
    if (named == api || (is_unknown && !only_if_named)) wanted = true;
  }
  return wanted;
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
#define SHUNT_OPEN(name, only_if_named)                                                                           \
  if (is_wanted(#name, only_if_named, options)) {                                                                 \
    SHUNT_TRY_ASSIGN(BackendReport report, open_##name(options));                                                 \
    registry.backends.push_back(std::move(report));                                                               \
  } else {                                                                                                        \
    registry.backends.push_back({.api = #name, .absent_because = "it was not asked for; --devices may name it"}); \
  }
#define SHUNT_BACKEND(name) SHUNT_OPEN(name, false)
#define SHUNT_NAMED_BACKEND(name) SHUNT_OPEN(name, true)
#include "devices/backends.def"
  return registry;
}

std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) names.push_back(take_name(list));
  return names;
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
    const std::string_view name = take_name(list);
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
      if (backend.api == api_of(name) && backend.devices.empty())
        return fail(Code::unsupported, fmt::format("device \"{}\" is absent: {}", name, backend.absent_because));
    return fail(Code::invalid, fmt::format("unknown device \"{}\"; there are:{}", name, ids));
  }
  return chosen;
}

}  // namespace shunt
