// Tells whether other programs disturb the measurements of a processor's kernels.
//
// A device's threads need as many processors as there are threads. Others disturb them if they leave less than most of
// that. A plain value; one thread at a time.
#pragma once

#include <functional>
#include <optional>

#include "base/system/processor_times.h"
#include "shunt/devices.h"

namespace shunt {

using ProcessorTimesSource = std::function<std::optional<ProcessorTimes>()>;

// What is measured while others take a greater share counts as disturbed, and is not kept.
inline constexpr double kMostOtherWork = 0.2;

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

}  // namespace shunt
