// Measures what a device takes for what, for the planner: how long it takes to start work, to copy, and to compute ops
// of many shapes.
//
// An op is timed only after the device computed it rightly (run/verify/conformance.h). Times are by the device's own
// clock, so that simulated devices can be measured too. One thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/costs/cost.h"
#include "plan/costs/profile.h"
#include "run/measure/calibration_cases.h"

namespace shunt {

struct CalibrationOptions {
  bool quick = false;
  // Called before each thing that is measured; false ends it, with an error.
  std::function<bool(const std::string& what, std::size_t done, std::size_t count)> progress;
};

// Measures launches, links and `cases`, and adds them to `before`, whose measurements of other shapes stay. What the
// device declines is left out; what it computes wrongly is in `refused`. Errors: interrupted where progress ended it;
// those of the device.
[[nodiscard]] Result<DeviceProfile> calibrate(Device& device, std::span<const BenchCase> cases, DeviceProfile before,
                                              const CalibrationOptions& options);

// Measures for at most `seconds` by the device's clock: launches and links, then the ops of these steps, those kinds
// first that should take most of their time. An op is timed after it was right on the dtypes in question. What there
// was no time for is not in the result, which is brief. `options.quick` is taken for true. Errors: as calibrate().
[[nodiscard]] Result<DeviceProfile> calibrate_briefly(Device& device, std::span<const Workload> work, double seconds,
                                                      const CalibrationOptions& options);

// Holds `before` against what launches, links and the ops of these steps take now, within the same bounds, and replaces
// what is wrong by more than twice, in either direction. Records that are not of these steps stay. The result counts as
// confirmed. Errors: as calibrate().
[[nodiscard]] Result<DeviceProfile> check_briefly(Device& device, std::span<const Workload> work, double seconds,
                                                  DeviceProfile before, const CalibrationOptions& options);

struct CheckedOp {
  std::string kind;
  bool is_seen = false;  // the profile has this very shape
  Cost cost;
  Prediction predicted;
  double us = 0;  // measured just now
  [[nodiscard]] double error() const { return predicted.us / us - 1; }
};
// Holds what a profile predicts of `cases` against what they take now. Kinds that it does not have, and shapes that
// take very long, are left out. Errors: as calibrate().
[[nodiscard]] Result<std::vector<CheckedOp>> check_predictions(Device& device, std::span<const BenchCase> cases,
                                                               const DeviceProfile& profile,
                                                               const CalibrationOptions& options);

}  // namespace shunt
