// How tests steer the simulated driver: functions that the library exports beside those of the driver.
#pragma once

#include <cstdint>

namespace shunt::simulated {

enum class Fault : std::uint32_t {
  none,
  no_device,        // initialization finds nothing
  out_of_memory,    // every allocation on the device fails
  illegal_address,  // the next kernel fails, seen when its end is asked for; every later call fails too
  never_done,       // nothing ends any more
  bad_image,        // no kernel loads
};

struct Control {
  void (*set_fault)(Fault fault);
  // Allocations, streams, events, graphs, modules and contexts that were made and not destroyed.
  std::uint64_t (*live_objects)();
  // Graphs started, and graphs prepared.
  std::uint64_t (*launches)();
  std::uint64_t (*graphs)();
};

// The name under which the library exports `const Control* (*)()`.
inline constexpr char kControlName[] = "shunt_simulated_control";

}  // namespace shunt::simulated
