// OpenGL 4.3 and OpenGL ES 3.1 compute as devices, without a window: any GPU whose driver has EGL, and drivers that run
// on the CPU. One folder, two rows of backends.def.
#pragma once

#include "devices/backend.h"
#include "devices/gl/context.h"

namespace shunt::gl {

// Returns the devices of one API, or the stage where it stopped. `adjust`: see context.h; for tests only.
[[nodiscard]] BackendReport open_api(Api api, const OpenOptions& options = {}, const Adjust& adjust = {});

}  // namespace shunt::gl
