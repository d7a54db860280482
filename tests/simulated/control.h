// How tests control the simulated driver: functions that the library exports next to the driver's.
#pragma once

#include <cstdint>

namespace shunt::simulated {

enum class Fault : std::uint32_t {
  none,
  no_device,        // initialization finds no device
  out_of_memory,    // every device allocation fails
  illegal_address,  // the next kernel fails, noticed when its completion is queried; every later call fails too
  never_done,       // nothing completes any more
  bad_image,        // no kernel loads
  cannot_register,  // memory of the host is not registered
  cannot_share,     // no device lets others read its memory
};

struct Control {
  void (*set_fault)(Fault fault);
  // Allocations, streams, events, graphs, modules and contexts that were created and not destroyed.
  std::uint64_t (*live_objects)();
  // Graphs launched, graphs instantiated, and kernels run.
  std::uint64_t (*launches)();
  std::uint64_t (*graphs)();
  std::uint64_t (*kernels)();
};

// The name of the exported `const Control* (*)()`.
inline constexpr char kControlName[] = "shunt_simulated_control";

}  // namespace shunt::simulated
