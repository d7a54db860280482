// Identifies the processor and the memory of a device. Several APIs may offer the same hardware: its memory counts
// once, and its devices wait for each other. Plain function; any thread.
#pragma once

#include <span>

#include "shunt/devices.h"

namespace shunt {

// Fills compute_resource, memory_resource and, if empty, memory_pool from the device's description. It is the same
// hardware as one of `known` if their PCI addresses are equal, else their UUIDs, else if vendor and device number, or
// else the name, match exactly one processor. What `known` tells of that hardware is filled in too.
void identify(DeviceInfo& info, std::span<const DeviceInfo> known);

}  // namespace shunt
