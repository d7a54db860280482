#include "devices/device_json.h"

#include <concepts>
#include <type_traits>

namespace shunt {
namespace {

using Json = nlohmann::ordered_json;

// THE list of what is kept of each struct: calls visit(key, field) for each.
template <class Rates, class Visit>
  requires std::same_as<std::remove_const_t<Rates>, PriorRates>
void visit_fields(Rates& rates, const Visit& visit) {
  visit("launch_us", rates.launch_us);
  visit("op_us", rates.op_us);
  visit("flops_per_s", rates.flops_per_s);
  visit("bytes_per_s", rates.bytes_per_s);
  visit("link_us", rates.link_us);
  visit("link_bytes_per_s", rates.link_bytes_per_s);
  visit("uncertainty", rates.uncertainty);
}

template <class Device, class Visit>
  requires std::same_as<std::remove_const_t<Device>, DeviceInfo>
void visit_fields(Device& device, const Visit& visit) {
  visit("id", device.id);
  visit("name", device.name);
  visit("vendor", device.vendor);
  visit("type", device.type);
  visit("emulated", device.emulated);
  visit("driver", device.driver);
  visit("api_version", device.api_version);
  visit("uuid", device.uuid);
  visit("pci_address", device.pci_address);
  visit("hardware", device.hardware);
  visit("compute_resource", device.compute_resource);
  visit("memory_resource", device.memory_resource);
  visit("memory_pool", device.memory_pool);
  visit("links_to_peers", device.links_to_peers);
  visit("memory_bytes", device.memory_bytes);
  visit("alignment_bytes", device.alignment_bytes);
  visit("largest_binding_bytes", device.largest_binding_bytes);
  visit("shared_memory_bytes", device.shared_memory_bytes);
  visit("largest_workgroup", device.largest_workgroup);
  visit("subgroup_size", device.subgroup_size);
  visit("compute_units", device.compute_units);
  visit("clock_mhz", device.clock_mhz);
  visit("features", device.features);
  visit("details", device.details);
  visit("prior", device.prior);
}

template <class Report, class Visit>
  requires std::same_as<std::remove_const_t<Report>, ApiReport>
void visit_fields(Report& report, const Visit& visit) {
  visit("api", report.api);
  visit("stage", report.stage);
  visit("reason", report.reason);
  visit("hint", report.hint);
  visit("start_ms", report.start_ms);
  visit("devices", report.devices);
}

// Enumerators by their names.
template <class Enum>
struct Count;
#define SHUNT_ONE_MORE(...) +1
template <>
struct Count<DeviceType> : std::integral_constant<int, 0 SHUNT_DEVICE_TYPES(SHUNT_ONE_MORE)> {};
template <>
struct Count<StartStage> : std::integral_constant<int, 0 SHUNT_START_STAGES(SHUNT_ONE_MORE)> {};
#undef SHUNT_ONE_MORE

template <class Enum>
bool enum_from_json(const Json& json, Enum& value) {
  if (!json.is_string()) return false;
  for (int number = 0; number < Count<Enum>::value; ++number) {
    value = static_cast<Enum>(number);
    if (name_of(value) == json.template get_ref<const std::string&>()) return true;
  }
  return false;
}

template <class T>
Json json_of(const T& value) {
  if constexpr (requires { visit_fields(value, [](const char*, const auto&) {}); }) {
    Json json = Json::object();
    visit_fields(value, [&](const char* key, const auto& field) { json[key] = json_of(field); });
    return json;
  } else if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else if constexpr (std::same_as<T, DeviceFeatures>) {
    return json_of(value.list());
  } else if constexpr (requires { typename T::value_type; } && !std::same_as<T, std::string>) {
    Json json = Json::array();
    for (const auto& each : value) json.push_back(json_of(each));
    return json;
  } else {
    return value;
  }
}

template <class T>
bool from_json(const Json& json, T& value) {
  if constexpr (requires { visit_fields(value, [](const char*, auto&) {}); }) {
    bool is_whole = json.is_object();
    visit_fields(value, [&](const char* key, auto& field) {
      const auto found = is_whole ? json.find(key) : json.end();
      is_whole = is_whole && found != json.end() && from_json(*found, field);
    });
    return is_whole;
  } else if constexpr (std::same_as<T, DeviceFeatures>) {
    if (!json.is_array()) return false;
    for (const Json& name : json) {
      const auto feature = device_feature_from_name(name.is_string() ? name.get<std::string>() : std::string());
      if (!feature) return false;
      value.insert(*feature);
    }
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    return enum_from_json(json, value);
  } else if constexpr (requires { typename T::value_type; } && !std::same_as<T, std::string>) {
    if (!json.is_array()) return false;
    for (const Json& each : json)
      if (!from_json(each, value.emplace_back())) return false;
    return true;
  } else {
    const bool fits = std::same_as<T, bool>          ? json.is_boolean()
                      : std::same_as<T, std::string> ? json.is_string()
                      : std::floating_point<T>       ? json.is_number()
                                                     : json.is_number_unsigned();
    if (fits) value = json.get<T>();
    return fits;
  }
}

}  // namespace

Json to_json(const DeviceInfo& device) { return json_of(device); }
Json to_json(const ApiReport& report) { return json_of(report); }

std::optional<ApiReport> report_from_json(const Json& json) {
  ApiReport report;
  if (!from_json(json, report)) return std::nullopt;
  return report;
}

}  // namespace shunt
