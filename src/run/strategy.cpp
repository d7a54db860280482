#include "run/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "devices/device.h"

namespace shunt {
namespace {

constexpr std::string_view kNames[] = {
#define SHUNT_NAME(strategy, name, meaning) name,
    SHUNT_STRATEGIES(SHUNT_NAME)
#undef SHUNT_NAME
};
constexpr std::string_view kMeanings[] = {
#define SHUNT_MEANING(strategy, name, meaning) meaning,
    SHUNT_STRATEGIES(SHUNT_MEANING)
#undef SHUNT_MEANING
};

bool prefers_a_kind(Strategy strategy) { return strategy == Strategy::gpu || strategy == Strategy::cpu; }

}  // namespace

std::string_view name_of(Strategy strategy) { return kNames[static_cast<std::size_t>(strategy)]; }

Result<Strategy> strategy_from_name(std::string_view name) {
  SHUNT_TRY_ASSIGN(const std::size_t place, place_of_name("strategy", name, kNames));
  return static_cast<Strategy>(place);
}

std::string describe_strategies(bool with_layers) {
  std::string text;
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (with_layers || kNames[i] != name_of(Strategy::layers))
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", kNames[i], kMeanings[i]);
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
