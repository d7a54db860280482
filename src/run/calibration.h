// Measures what a device takes for what, for the planner: how long it takes to start work, to copy, and to compute ops
// of many shapes.
//
// An op is timed only after the device computed it rightly (run/conformance.h). Times are by the device's own clock, so
// that simulated devices can be measured too. One thread.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/cost.h"
#include "plan/profile.h"
#include "run/op_cases.h"
#include "shunt/graph.h"

namespace shunt {

// In steps of so many tokens ops are measured.
inline constexpr std::array kMeasuredTokens = {1U, 2U, 4U, 8U, 16U, 128U, 512U};
// What to measure. The shapes that models have, of the ops and dtypes that they use; `quick`: fewer of each.
[[nodiscard]] std::vector<OpCase> calibration_cases(bool quick);
// Each different shape that a device would compute of a graph, were it alone.
[[nodiscard]] std::vector<OpCase> cases_of(const Graph& graph, Device& device);

struct CalibrationOptions {
  bool quick = false;
  // Called before each thing that is measured; false ends it, with an error.
  std::function<bool(const std::string& what, std::size_t done, std::size_t count)> progress;
};

// Measures launches, links and `cases`, and adds them to `before`, whose measurements of other shapes stay. What the
// device declines is left out; what it computes wrongly is in `refused`. Errors: interrupted where progress ended it;
// those of the device.
[[nodiscard]] Result<DeviceProfile> calibrate(Device& device, std::span<const OpCase> cases, DeviceProfile before,
                                              const CalibrationOptions& options);

// A step that is to run so often.
struct Workload {
  const Graph* graph = nullptr;
  double times = 0;
};
// Measures for at most `seconds` by the device's clock: launches and links, then the ops of these steps, those kinds
// first that should take most of their time. An op is timed after it was right on the dtypes in question. What there
// was no time for is not in the result, which is brief. `options.quick` is taken for true. Errors: as calibrate().
[[nodiscard]] Result<DeviceProfile> calibrate_briefly(Device& device, std::span<const Workload> work, double seconds,
                                                      const CalibrationOptions& options);

// Shapes between those of calibration_cases().
[[nodiscard]] std::vector<OpCase> unseen_cases();

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
[[nodiscard]] Result<std::vector<CheckedOp>> check_predictions(Device& device, std::span<const OpCase> cases,
                                                               const DeviceProfile& profile,
                                                               const CalibrationOptions& options);

}  // namespace shunt
