// Which numbers of a profile can be true. A clock that was read beside a busy machine, or a file that somebody changed,
// may say that a device computes faster than its processors can; no plan may be made of that.
//
// The limits are those of the processors, where their number is known, and otherwise what the device's other records
// and its prior leave room for. Plain functions; any thread.
#pragma once

#include <cstddef>

#include "plan/costs/profile.h"

namespace shunt {

// What a record says that the device reaches. A large part of a short time is the wait for the op before.
[[nodiscard]] ComputeRates rates_of(const MeasuredOp& point, double op_us);

struct UsableProfile {
  DeviceProfile profile;
  std::size_t refused = 0;  // numbers that are not in it, as they cannot be true
};
// The profile without the records that beat what the device can reach, and without launches, links and ratios that no
// device has. What is left out counts as not measured.
[[nodiscard]] UsableProfile within_limits(DeviceProfile profile, const DeviceInfo& device);

// Some op is recorded to be far slower than what the device's other records imply. It may be so, or a measurement was
// disturbed.
[[nodiscard]] bool has_far_records(const DeviceProfile& profile);

}  // namespace shunt
