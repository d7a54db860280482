// A browser keeps no measurements, so none are made.
#include "run/measure/brief_calibration.h"

namespace shunt {

Forecast forecast_of(const Plan&, double) { return {}; }
bool may_measure(const Runtime&, const DevicePool&) { return false; }
bool pays_to_measure(const MeasuringOptions&) { return false; }
std::optional<std::vector<DeviceCost>> measure_briefly(const MeasuringOptions&, const std::atomic<bool>*) {
  return std::nullopt;
}
void doubt_what_runs_contradict(const Runtime&, DevicePool&) {}

}  // namespace shunt
