// How tests control the simulated Metal: functions that the library exports next to Metal's.
#pragma once

#include <cstdint>

namespace shunt::simulated {

enum class MetalFault : std::uint32_t {
  none,
  no_device,      // no GPU is found
  no_buffer,      // every allocation returns nil
  no_library,     // no kernel compiles
  command_error,  // the next command buffer ends with an error
  never_done,     // nothing completes any more
};

struct MetalControl {
  // `code`: the error's MTLCommandBufferError. Clearing the fault first runs all pending work.
  void (*set_fault)(MetalFault fault, std::int64_t code);
  // Objects that were created and not released by all owners.
  std::uint64_t (*live_objects)();
  std::uint64_t (*commits)();
  // Returns whether the last kernel was compiled with precise math.
  bool (*precise)();
};

// The name of the exported `const MetalControl* (*)()`.
inline constexpr char kMetalControlName[] = "shunt_simulated_metal_control";

}  // namespace shunt::simulated
