// Device records as C structs, and the caller's selectors. Plain values; any thread.
#pragma once

#include <span>
#include <string>

#include "report.h"
#include "shunt/devices.h"

namespace shunt::c {

// Owns the text that a C record points to. The device's own record must outlive it.
struct DeviceRecord {
  explicit DeviceRecord(const DeviceInfo& its_device);
  // Leaves free memory and budget unknown.
  [[nodiscard]] shunt_device_info info() const;

  const DeviceInfo* device;
  std::string api;
  std::string details;
};

// Errors: invalid for a chained struct, type or feature that does not exist.
[[nodiscard]] Result<DeviceSelector> selector_of(const shunt_device_selector& from);

}  // namespace shunt::c
