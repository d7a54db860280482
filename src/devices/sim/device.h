// Simulated devices: they take as long as their Spec says, on a clock that stands still until somebody waits for them.
// Results are right, or zeros for devices that do not compute.
//
// Each launch, transfer and fault is one event on the clock that all devices of a simulated machine share. Beside real
// devices, whose work takes no time on that clock, results are right but times mean nothing.
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

// `recorder` may be null; it gets the clock's times. The device shares ownership of the clock. Its events end with it,
// on the thread that destroys it. REQUIRES: nobody advances the clock meanwhile. `use`: bytes used of its memory pool.
// `faults`, if not null, replace the Spec's.
[[nodiscard]] std::unique_ptr<Device> make_sim_device(Spec spec, std::shared_ptr<VirtualClock> clock,
                                                      trace::Recorder* recorder = nullptr, PoolUse use = no_use(),
                                                      std::shared_ptr<FaultCount> faults = nullptr);
// Has another program take so many bytes of the device's memory, instead of those that it had: at most what is free,
// and whatever becomes free. REQUIRES: the device is simulated.
void take_memory(Device& device, std::uint64_t bytes);
// Makes all devices of a machine; those of one memory pool share its bytes, and programs take them over time (Spec).
[[nodiscard]] std::vector<std::unique_ptr<Device>> make_sim_devices(std::span<const Spec> specs,
                                                                    const std::shared_ptr<VirtualClock>& clock,
                                                                    trace::Recorder* recorder = nullptr,
                                                                    const FaultTable& faults = {});

}  // namespace shunt::sim
