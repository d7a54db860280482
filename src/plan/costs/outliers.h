// Finds the records of a profile that stand out. They may be true, or something disturbed their measurement: only a
// second one tells.
//
// A record stands out if its time differs by a factor of 16 from the device's prior, from the other records of its
// kind, or from those of all kinds. Plain functions; any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plan/costs/profile.h"

namespace shunt {

struct StartRecord {
  std::string_view name;
  double DeviceProfile::* us;
};
inline constexpr std::array kStartRecords{
    StartRecord{"starting a program", &DeviceProfile::launch_us},
    StartRecord{"starting a program after a pause", &DeviceProfile::wake_us},
    StartRecord{"starting an op", &DeviceProfile::op_us},
};

struct LinkRecord {
  std::string_view name;
  LinkRates DeviceProfile::* rates;
};
inline constexpr std::array kLinkRecords{
    LinkRecord{"copying to the device", &DeviceProfile::to_device},
    LinkRecord{"copying from the device", &DeviceProfile::from_device},
    LinkRecord{"copying from another device", &DeviceProfile::from_peers},
    LinkRecord{"copying weights", &DeviceProfile::weights},
    LinkRecord{"copying both ways", &DeviceProfile::both_ways},
};
// Copies of these sizes tell links apart.
inline constexpr std::array<std::uint64_t, 2> kComparedBytes{64U << 10U, 16U << 20U};

struct Outlier {
  enum class Of : std::uint8_t { start, link, op };
  Of of = Of::op;
  std::string what;         // the name of a start or link, or the kind of the op
  Cost cost;                // of the op's shape
  double times_slower = 1;  // than it should be; below 1: faster
  std::string fingerprint;  // of its numbers: another record has another one
};

// Returns all outliers. None are found among ops if the device has no prior rates.
[[nodiscard]] std::vector<Outlier> outliers_of(const DeviceProfile& profile, const DeviceInfo& device);
// Returns those that no second measurement has confirmed (DeviceProfile::confirmed).
[[nodiscard]] std::vector<Outlier> unconfirmed_outliers(const DeviceProfile& profile, const DeviceInfo& device);
// Notes that a second measurement agreed with the record.
void confirm(DeviceProfile& profile, const Outlier& outlier);
// Forgets confirmations of what is no longer among the profile's outliers.
void keep_used_confirmations(DeviceProfile& profile, const DeviceInfo& device);

}  // namespace shunt
