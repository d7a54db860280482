// Which processor and which memory a device is: what several APIs offer is known as one, so that its memory counts
// once and its devices wait for each other. Plain function; any thread.
#pragma once

#include <span>

#include "shunt/devices.h"

namespace shunt {

// Fills compute_resource, memory_resource and, where it is empty, memory_pool from what the device tells of itself. It
// is the same hardware as one of `known` where PCI addresses are equal, else UUIDs, else where its vendor and device
// number, or else its name, are those of one processor alone. What `known` tells of it then is filled in too.
void identify(DeviceInfo& info, std::span<const DeviceInfo> known);

}  // namespace shunt
