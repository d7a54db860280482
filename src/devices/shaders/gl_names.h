// Helpers that OpenGL and WebGL2 share: names of renderers, and logs of shaders and programs. Plain functions.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace shunt {

// Returns whether a renderer of this name computes on the CPU.
[[nodiscard]] inline bool is_software_renderer(std::string_view renderer) {
  constexpr std::string_view kOnTheCpu[] = {"llvmpipe", "softpipe", "swrast", "Software Rasterizer", "SwiftShader"};
  return std::ranges::any_of(kOnTheCpu, [&](std::string_view name) { return renderer.contains(name); });
}

// The types of glGetShaderiv and glGetProgramiv, and of glGetShaderInfoLog and glGetProgramInfoLog.
using GlAsk = void (*)(unsigned object, unsigned what, int* value);
using GlAskLog = void (*)(unsigned object, int capacity, int* length, char* text);

// Returns whether `what`, a compile or link status, is true.
[[nodiscard]] inline bool gl_succeeded(unsigned object, unsigned what, GlAsk ask) {
  int status = 0;
  ask(object, what, &status);
  return status != 0;
}

// Returns the log of the compiler or linker.
[[nodiscard]] inline std::string gl_log_of(unsigned object, GlAsk ask, GlAskLog ask_log) {
  constexpr unsigned kInfoLogLength = 0x8B84;
  int length = 0;
  ask(object, kInfoLogLength, &length);
  std::string log(static_cast<std::size_t>(std::max(1, length)), '\0');
  int written = 0;
  ask_log(object, static_cast<int>(log.size()), &written, log.data());
  log.resize(static_cast<std::size_t>(std::clamp(written, 0, static_cast<int>(log.size()))));
  log.resize(log.find_last_not_of(" \n") + 1);
  return log;
}

}  // namespace shunt
