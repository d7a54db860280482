// WebGL2 as a device: what browsers without WebGPU have. Kernels are draws to textures.
#pragma once

#include "devices/backend.h"
#include "devices/webgl/api.h"

namespace shunt::webgl {

// Errors: unsupported for a context that kernels cannot run on.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(const Functions& functions);

}  // namespace shunt::webgl
