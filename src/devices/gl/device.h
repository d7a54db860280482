// OpenGL 4.3 and OpenGL ES 3.1 compute as devices, without a window: any GPU whose driver has EGL, and drivers that
// run on the CPU. One folder, two rows of backends.def.
#pragma once

#include "devices/gl/context.h"
#include "devices/registry.h"

namespace shunt::gl {

struct OpenSettings {
  const char* library = "libEGL.so.1";
  Adjust adjust;
};

// The devices of one API, or the stage where it stopped.
[[nodiscard]] BackendReport open_api(Api api, const OpenSettings& settings);

}  // namespace shunt::gl
