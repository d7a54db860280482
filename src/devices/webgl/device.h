// WebGL2 as a device, for browsers without WebGPU. Kernels are draws to textures.
#pragma once

#include "devices/backend.h"
#include "devices/webgl/api.h"

namespace shunt::webgl {

// Errors: unsupported if kernels cannot run on the context.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(const Functions& functions);

}  // namespace shunt::webgl
