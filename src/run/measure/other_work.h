// Tells whether other programs disturb the measurements of a processor's kernels.
//
// A device's threads need as many processors as there are threads. Others disturb them if they leave less than most of
// that. A plain value; one thread at a time.
#pragma once

#include <functional>
#include <optional>

#include "base/system/processor_times.h"
#include "plan/costs/profile.h"
#include "shunt/devices.h"
#include "shunt/status.h"

namespace shunt {

using ProcessorTimesSource = std::function<std::optional<ProcessorTimes>()>;

class OtherWork {
 public:
  // Watches from now on, if the device is the host's processor.
  OtherWork(const DeviceInfo& device, const ProcessorTimesSource& times);
  // Returns the share of the processors that the device's threads needed and others took since then; 0 if it is
  // unknown, as for GPUs.
  [[nodiscard]] double share() const;

 private:
  double threads_;
  ProcessorTimesSource times_;           // empty: not watched
  std::optional<ProcessorTimes> begin_;  // nullopt: unknown
};

// The records of a device, and the share of the processors that others took while they were measured.
struct WatchedProfile {
  DeviceProfile profile;
  double taken = 0;
  // Returns whether others took so much that the records are not to be kept.
  [[nodiscard]] bool is_disturbed() const;
};

// Measures a device, and once more if others disturbed it and `may_repeat` says so, since they may have ended. Errors:
// those of `measure`.
[[nodiscard]] Result<WatchedProfile> measure_watched(const DeviceInfo& device, const ProcessorTimesSource& times,
                                                     const std::function<Result<DeviceProfile>()>& measure,
                                                     const std::function<bool(const WatchedProfile&)>& may_repeat);

}  // namespace shunt
