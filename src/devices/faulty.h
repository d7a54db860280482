// A device that injects faults into a real one.
#pragma once

#include <memory>

#include "devices/device.h"
#include "devices/faults.h"

namespace shunt {

// If devices copy from each other, all of them must be wrapped. `faults` may be null.
[[nodiscard]] std::unique_ptr<Device> make_faulty(std::unique_ptr<Device> real, std::shared_ptr<FaultCount> faults);

}  // namespace shunt
