#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/units.h"
#include "shunt/devices.h"

namespace shunt {
namespace {

constexpr std::string_view kTypeNames[] = {
#define SHUNT_DEVICE_TYPE(type, name) name,
    SHUNT_DEVICE_TYPES(SHUNT_DEVICE_TYPE)
#undef SHUNT_DEVICE_TYPE
};
constexpr std::string_view kFeatureNames[] = {
#define SHUNT_DEVICE_FEATURE(feature, name, meaning) name,
    SHUNT_DEVICE_FEATURES(SHUNT_DEVICE_FEATURE)
#undef SHUNT_DEVICE_FEATURE
};
constexpr std::string_view kStageNames[] = {
#define SHUNT_START_STAGE(stage, name) name,
    SHUNT_START_STAGES(SHUNT_START_STAGE)
#undef SHUNT_START_STAGE
};

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

}  // namespace

std::string_view name_of(DeviceType type) { return kTypeNames[static_cast<std::size_t>(type)]; }
std::string_view name_of(DeviceFeature feature) { return kFeatureNames[static_cast<std::size_t>(feature)]; }
std::string_view name_of(StartStage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }

Result<DeviceFeature> device_feature_from_name(std::string_view name) {
  const auto found = std::ranges::find(kFeatureNames, name);
  if (found != std::end(kFeatureNames)) return static_cast<DeviceFeature>(found - std::begin(kFeatureNames));
  std::string known;
  for (const std::string_view each : kFeatureNames) known += fmt::format(" {}", each);
  return fail(Code::invalid, fmt::format("unknown device feature \"{}\"; choose from:{}", name, known));
}

std::vector<DeviceFeature> DeviceFeatures::list() const {
  std::vector<DeviceFeature> features;
  for (std::size_t number = 0; number < std::size(kFeatureNames); ++number)
    if (const auto feature = static_cast<DeviceFeature>(number); contains(feature)) features.push_back(feature);
  return features;
}

std::string DeviceRequirements::refusal(const DeviceInfo& device) const {
  if (min_memory_bytes != 0 && device.memory_bytes == 0)
    return fmt::format("{} of memory is required, but the memory of {} is unknown", in_units(min_memory_bytes),
                       device.id);
  if (device.memory_bytes < min_memory_bytes)
    return fmt::format("{} of memory is required, but {} has {}", in_units(min_memory_bytes), device.id,
                       in_units(device.memory_bytes));
  for (const DeviceFeature feature : features.list())
    if (!device.features.contains(feature)) return fmt::format("{} lacks {}", device.id, name_of(feature));
  if (!in_lower_case(device.vendor).contains(in_lower_case(vendor)))
    return fmt::format("vendor \"{}\" is required, but that of {} is \"{}\"", vendor, device.id, device.vendor);
  if (type && device.type != *type)
    return fmt::format("type {} is required, but that of {} is {}", name_of(*type), device.id, name_of(device.type));
  if (accept && !accept(device)) return fmt::format("{} is not accepted by the caller", device.id);
  return {};
}

}  // namespace shunt
