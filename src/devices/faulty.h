// A device with faults, over a real one that has none of them.
#pragma once

#include <memory>

#include "devices/device.h"
#include "devices/faults.h"

namespace shunt {

// All devices that copy from each other have to be made so. `faults` may be null.
[[nodiscard]] std::unique_ptr<Device> make_faulty(std::unique_ptr<Device> real, std::shared_ptr<FaultCount> faults);

}  // namespace shunt
