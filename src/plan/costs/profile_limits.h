// Decides which numbers of a profile can be true. A clock read on a busy machine, or an edited file, may claim that a
// device is faster than its processors can be. No plan may rest on such numbers.
//
// The limits are those of the processors, if their number is known, and what the device's other records and its prior
// leave room for. Plain functions; any thread.
#pragma once

#include <cstddef>

#include "plan/costs/profile.h"

namespace shunt {

// Returns the rates that a record implies. A large part of a short time is the wait for the previous op.
[[nodiscard]] ComputeRates rates_of(const MeasuredOp& point, double op_us);

struct UsableProfile {
  DeviceProfile profile;
  std::size_t refused = 0;  // how many numbers were dropped because they cannot be true
};
// Drops records that exceed what the device can reach, and launches, links and ratios that no device has. What is
// dropped counts as not measured.
[[nodiscard]] UsableProfile within_limits(DeviceProfile profile, const DeviceInfo& device);

}  // namespace shunt
