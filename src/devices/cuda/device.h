// A GPU behind the CUDA or HIP driver as a Device.
#pragma once

#include <memory>

#include "devices/backend.h"
#include "devices/cuda/driver.h"

namespace shunt::cuda {

// Makes the device with that number. Errors: those of the driver.
[[nodiscard]] Result<std::unique_ptr<Device>> make_cuda_device(std::shared_ptr<const Driver> driver, int ordinal,
                                                               const OpenOptions& options);

}  // namespace shunt::cuda
