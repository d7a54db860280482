// How tests steer the simulated Metal: functions that the library exports beside those of Metal.
#pragma once

#include <cstdint>

namespace shunt::simulated {

enum class MetalFault : std::uint32_t {
  none,
  no_device,      // there is no GPU
  no_buffer,      // every allocation gives nil
  no_library,     // no kernel compiles
  command_error,  // the next command buffer ends with an error
  never_done,     // nothing ends any more
};

struct MetalControl {
  // `code`: of the error, an MTLCommandBufferError. Without a fault, all that is still to be done is done first.
  void (*set_fault)(MetalFault fault, std::int64_t code);
  // Objects that were made and not released by all who had a reference.
  std::uint64_t (*live_objects)();
  std::uint64_t (*commits)();
  // Whether the kernel compiled last was to be precise.
  bool (*precise)();
};

// The name under which the library exports `const MetalControl* (*)()`.
inline constexpr char kMetalControlName[] = "shunt_simulated_metal_control";

}  // namespace shunt::simulated
