// Measures unmeasured devices before they work, and checks records that stand out, that runs have contradicted, or that
// nobody has confirmed for long. It does so only if there is enough work to pay for it.
//
// Plain functions; one thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plan/costs/cost.h"
#include "run/measure/calibration.h"
#include "run/measure/other_work.h"
#include "run/pool/device_pool.h"

namespace shunt {

// The work to be done, as it would be planned for devices with these costs.
struct Forecast {
  double us = 0;
  std::size_t device = 0;  // the one that computes longest
};
// Forecasts a plan that runs so often.
[[nodiscard]] Forecast forecast_of(const Plan& plan, double times);

struct MeasuringOptions {
  const Runtime& runtime;
  const DevicePool& device_pool;
  std::span<const Workload> work;
  std::optional<double> margin;
  // Forecasts the work with these devices and this margin.
  std::function<Result<Forecast>(const DeviceSet& set, std::optional<double> margin)> forecast;
  // Tells whether other programs disturb the measurements.
  ProcessorTimesSource processor_times = [] { return shunt::processor_times(); };
};

// Returns whether there is a choice of devices and one of them was not measured or has records in doubt, so that some
// work could need measurements.
[[nodiscard]] bool may_measure(const Runtime& runtime, const DevicePool& device_pool);
// Returns whether measured costs could save more time of the work than measuring takes.
[[nodiscard]] bool pays_to_measure(const MeasuringOptions& options);

// Measures the devices that need it for the work, and returns the costs of all devices in the pool, in order. What was
// measured is saved for later runs, except of processors that other programs kept busy meanwhile. Nothing if
// interrupted, by the runtime's watch or by `interrupted`, which may be null. Notifies the user before it begins, of
// records that were wrong, and of what is not saved.
[[nodiscard]] std::optional<std::vector<DeviceCost>> measure_briefly(const MeasuringOptions& options,
                                                                     const std::atomic<bool>* interrupted);

// Marks on disk the records of measured devices that take several times more, or less, than predicted. They are
// measured again before the next long work.
void doubt_what_runs_contradict(const Runtime& runtime, DevicePool& device_pool);

}  // namespace shunt
