// Measures devices for the planner: how long they take to start work, to copy, and to compute ops of many shapes.
//
// An op is timed only after the device computed it correctly (run/verify/conformance.h). Times are by the device's own
// clock, so that simulated devices can be measured too. One thread.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/costs/cost.h"
#include "plan/costs/profile.h"
#include "run/measure/calibration_cases.h"
#include "run/measure/kernel_comparison.h"

namespace shunt {

struct CalibrationOptions {
  bool quick = false;
  // Checks all ops in question on all dtypes and sizes, not only on the dtypes of the cases, in small sizes.
  bool checks_all = true;
  // Shapes are not visited again after this time, by the device's clock.
  double enough_seconds = std::numeric_limits<double>::infinity();
  Device* peer = nullptr;  // another device, from which copies are measured if it has a direct link
  ConfirmKernels confirm;  // called with what won over kernels by rule; empty: all of that counts
  // Called before each measurement; false ends the calibration with an error.
  std::function<bool(const std::string& what, std::size_t done, std::size_t count)> progress;
};

// Returns another one of these devices that may have a direct link to that one; null if there is none.
[[nodiscard]] Device* peer_of(const Device& device, std::span<Device* const> devices);

// Measures launches, links and `cases`, and adds them to `before`, whose measurements of other shapes stay. Leaves out
// what the device declines; puts what it computes wrongly in `refused`. Where the device has several kernels for a
// case, they are compared first, unless it is to be quick; the device then takes those that were chosen. Errors:
// interrupted if progress ended it; those of the device.
[[nodiscard]] Result<DeviceProfile> calibrate(Device& device, std::span<const BenchCase> cases, DeviceProfile before,
                                              const CalibrationOptions& options);

// Measures for at most `seconds` by the device's clock: launches, links, then the ops of these steps. Those kinds come
// first that should take most of the steps' time. An op is timed after it was correct on the dtypes in question. The
// result is brief, and lacks what there was no time for. `options.quick` is taken to be true. Errors: as calibrate().
[[nodiscard]] Result<DeviceProfile> calibrate_briefly(Device& device, std::span<const Workload> work, double seconds,
                                                      const CalibrationOptions& options);

// Compares `before` with what launches, links and the ops of these steps take now, within the same limits, those of
// kinds with outliers first (plan/costs/outliers.h). Replaces what is off by more than a factor of two, in either
// direction, and confirms outliers that are not. Records of other ops stay. The result counts as confirmed. Errors: as
// calibrate().
[[nodiscard]] Result<DeviceProfile> check_briefly(Device& device, std::span<const Workload> work, double seconds,
                                                  DeviceProfile before, const CalibrationOptions& options);

struct CheckedOp {
  std::string kind;
  bool is_seen = false;  // the profile has exactly this shape
  Cost cost;
  Prediction predicted;
  double us = 0;  // measured just now
  [[nodiscard]] double error() const { return predicted.us / us - 1; }
};
// Compares a profile's predictions for `cases` with what they take now. Leaves out kinds that it lacks, and shapes that
// take very long. Errors: as calibrate().
[[nodiscard]] Result<std::vector<CheckedOp>> check_predictions(Device& device, std::span<const BenchCase> cases,
                                                               const DeviceProfile& profile,
                                                               const CalibrationOptions& options);

}  // namespace shunt
