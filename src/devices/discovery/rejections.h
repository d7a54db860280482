// Reports why devices and APIs are not in use. Plain function; any thread.
#pragma once

#include <span>
#include <vector>

#include "shunt/devices.h"

namespace shunt {

// Returns each opened device that is not in use, and each API without devices.
[[nodiscard]] std::vector<DeviceRejection> rejections_of(std::span<const ApiReport> opened,
                                                         std::span<const DeviceInfo> in_use);

}  // namespace shunt
