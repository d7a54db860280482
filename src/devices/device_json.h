// Descriptions of devices as JSON: what is kept of a machine, and what commands answer. Plain functions; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include "shunt/devices.h"

namespace shunt {

// One key per field of the structs, under its name.
[[nodiscard]] nlohmann::ordered_json to_json(const DeviceInfo& device);
[[nodiscard]] nlohmann::ordered_json to_json(const ApiReport& report);
// Nothing where a field is missing, or is not what it has to be.
[[nodiscard]] std::optional<ApiReport> report_from_json(const nlohmann::ordered_json& json);

}  // namespace shunt
