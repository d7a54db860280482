// Device descriptions as JSON, for the cache of known APIs and the output of commands. Plain functions; any thread.
#pragma once

#include "base/json.h"
#include "shunt/devices.h"

namespace shunt {

// One key per field of the structs, under the field's name.
[[nodiscard]] Json to_json(const DeviceInfo& device);
[[nodiscard]] Json to_json(const ApiReport& report);
// Returns nullopt if a field is missing or malformed.
[[nodiscard]] std::optional<ApiReport> report_from_json(const Json& json);

}  // namespace shunt
