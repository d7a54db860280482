// Measures devices before they work on, where nobody has, and checks what was measured where runs have contradicted it
// or nobody has confirmed it for long; only where so much is to be done that it can pay.
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
#include "run/pool/device_pool.h"

namespace shunt {

// What is to be done, as it would be planned for devices with these costs.
struct Forecast {
  double us = 0;
  std::size_t device = 0;  // that computes longest
};
// Of a plan that runs so often.
[[nodiscard]] Forecast forecast_of(const Plan& plan, double times);

struct MeasuringOptions {
  const Runtime& runtime;
  const DevicePool& device_pool;
  std::optional<double> margin;
  // With these devices and margin.
  std::function<Result<Forecast>(const DeviceSet& set, std::optional<double> margin)> forecast;
};

// Whether knowing what the pool's devices really take could save more time of what is to be done than it costs.
[[nodiscard]] bool pays_to_measure(const MeasuringOptions& options);

// What the pool's devices take, in their order, with what was measured now, which is kept for later runs; nothing
// where it was interrupted, by the runtime's watch or by `interrupted`, which may be null. The user hears of it before.
[[nodiscard]] std::optional<std::vector<DeviceCost>> measure_briefly(const Runtime& runtime,
                                                                     const DevicePool& device_pool,
                                                                     std::span<const Workload> work,
                                                                     const std::atomic<bool>* interrupted);

// Marks on disk the records of measured devices that take several times more, or less, than predicted: before the next
// long work they are measured again.
void doubt_what_runs_contradict(const Runtime& runtime, DevicePool& device_pool);

}  // namespace shunt
