#include "run/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "devices/device.h"

namespace shunt {
namespace {

struct Row {
  std::string_view name;
  std::string_view meaning;
};

constexpr Row kStrategies[] = {
#define SHUNT_STRATEGY(strategy, name, meaning) {name, meaning},
    SHUNT_STRATEGIES(SHUNT_STRATEGY)
#undef SHUNT_STRATEGY
};

bool prefers_a_kind(Strategy strategy) { return strategy == Strategy::gpu || strategy == Strategy::cpu; }

}  // namespace

std::string_view name_of(Strategy strategy) { return kStrategies[static_cast<std::size_t>(strategy)].name; }

Result<Strategy> strategy_from_name(std::string_view name) {
  std::string known;
  std::vector<std::string_view> names;
  for (std::size_t index = 0; index < std::size(kStrategies); ++index) {
    if (kStrategies[index].name == name) return static_cast<Strategy>(index);
    known += fmt::format(" {}", kStrategies[index].name);
    names.push_back(kStrategies[index].name);
  }
  return fail(Code::invalid,
              fmt::format("unknown strategy \"{}\"{}; choose from:{}", name, did_you_mean(name, names), known));
}

std::string describe_strategies(bool with_layers) {
  std::string text;
  for (const Row& row : kStrategies)
    if (with_layers || row.name != name_of(Strategy::layers))
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", row.name, row.meaning);
  return text;
}

std::uint32_t preferred_device(Strategy strategy, std::span<Device* const> devices) {
  if (!prefers_a_kind(strategy)) return kNone;
  for (const bool emulated : {false, true}) {
    const auto preferred = std::ranges::find_if(devices, [&](const Device* device) {
      const DeviceInfo& info = device->info();
      return info.emulated == emulated && info.is_host_cpu() == (strategy == Strategy::cpu);
    });
    if (preferred != devices.end()) return static_cast<std::uint32_t>(preferred - devices.begin());
  }
  return kNone;
}

Status check_strategy(Strategy strategy, const DevicePool& device_pool) {
  const DeviceSet set = device_pool.devices();
  if (!prefers_a_kind(strategy) || preferred_device(strategy, set.devices) != kNone) return {};
  std::string names;
  for (const Device* device : set.devices) names += " " + device->info().id;
  const std::string what =
      fmt::format("strategy {}: no such device is among those in use:{}", name_of(strategy), names);
  if (set.strict) return fail(Code::unsupported, what + "; strict allows no fallback to auto");
  device_pool.tell(what + "; going on as with auto");
  return {};
}

}  // namespace shunt
