#include "devices/discovery/device_json.h"

#include "base/field_json.h"

namespace shunt {

// THE list of the fields that are kept of each struct.
void visit_fields(field_json::FieldsOf<PriorRates> auto& rates, const auto& visit) {
  visit("launch_us", rates.launch_us);
  visit("op_us", rates.op_us);
  visit("flops_per_s", rates.flops_per_s);
  visit("bytes_per_s", rates.bytes_per_s);
  visit("link_us", rates.link_us);
  visit("link_bytes_per_s", rates.link_bytes_per_s);
  visit("uncertainty", rates.uncertainty);
}

void visit_fields(field_json::FieldsOf<DeviceInfo> auto& device, const auto& visit) {
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

void visit_fields(field_json::FieldsOf<ApiReport> auto& report, const auto& visit) {
  visit("api", report.api);
  visit("stage", report.stage);
  visit("reason", report.reason);
  visit("hint", report.hint);
  visit("start_ms", report.start_ms);
  visit("devices", report.devices);
}

#define SHUNT_ONE_MORE(...) +1
template <>
struct field_json::Count<DeviceType> : std::integral_constant<int, 0 SHUNT_DEVICE_TYPES(SHUNT_ONE_MORE)> {};
template <>
struct field_json::Count<StartStage> : std::integral_constant<int, 0 SHUNT_START_STAGES(SHUNT_ONE_MORE)> {};
#undef SHUNT_ONE_MORE

Json to_json(const DeviceInfo& device) { return field_json::json_of(device); }
Json to_json(const ApiReport& report) { return field_json::json_of(report); }

std::optional<ApiReport> report_from_json(const Json& json) {
  ApiReport report;
  if (!field_json::from_json(json, report)) return std::nullopt;
  return report;
}

}  // namespace shunt
