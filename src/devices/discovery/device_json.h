// Descriptions of devices as JSON: what is kept of a machine, and what commands answer. Plain functions; any thread.
#pragma once

#include "base/json.h"
#include "shunt/devices.h"

namespace shunt {

// One key per field of the structs, under its name.
[[nodiscard]] Json to_json(const DeviceInfo& device);
[[nodiscard]] Json to_json(const ApiReport& report);
// Nothing where a field is missing, or is not what it has to be.
[[nodiscard]] std::optional<ApiReport> report_from_json(const Json& json);

}  // namespace shunt
