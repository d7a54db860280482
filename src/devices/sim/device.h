// Simulated devices: they take as long as their Spec says, by a clock that stands still until somebody waits for them,
// and give right results, or zeros where they do not compute.
//
// Each launch, transfer and fault is one event on the clock that all devices of a simulated machine share. Beside real
// devices, whose work takes no time on that clock, results are right and times mean nothing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "devices/device.h"
#include "devices/sim/clock.h"
#include "devices/sim/memory.h"
#include "devices/sim/spec.h"
#include "trace/recorder.h"

namespace shunt::sim {

// `recorder`, which may be null, gets the clock's times. The device keeps the clock; its events end with it, on the
// thread that ends it, so nobody may be advancing the clock then. `use`: of its memory pool. `faults`, where not null,
// are in place of the Spec's.
[[nodiscard]] std::unique_ptr<Device> make_sim_device(Spec spec, std::shared_ptr<VirtualClock> clock,
                                                      trace::Recorder* recorder = nullptr, PoolUse use = no_use(),
                                                      std::shared_ptr<FaultCount> faults = nullptr);
// All of a machine: those of one memory pool take from the same bytes.
[[nodiscard]] std::vector<std::unique_ptr<Device>> make_sim_devices(std::span<const Spec> specs,
                                                                    const std::shared_ptr<VirtualClock>& clock,
                                                                    trace::Recorder* recorder = nullptr,
                                                                    const FaultTable& faults = {});

}  // namespace shunt::sim
