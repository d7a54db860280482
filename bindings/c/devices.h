// Records of devices in the words of C, and selectors of the caller's. Plain values; any thread.
#pragma once

#include <span>
#include <string>

#include "report.h"
#include "shunt/devices.h"

namespace shunt::c {

// Holds the text that a record for C points to. The device's own record must outlive it.
struct DeviceRecord {
  explicit DeviceRecord(const DeviceInfo& its_device);
  // Free memory and budget are not known.
  [[nodiscard]] shunt_device_info info() const;

  const DeviceInfo* device;
  std::string api;
  std::string details;
};

// Errors: invalid for a chain, a type or a feature that does not exist.
[[nodiscard]] Result<DeviceSelector> selector_of(const shunt_device_selector& from);

}  // namespace shunt::c
