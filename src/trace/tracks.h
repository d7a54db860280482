// Assigns events to tracks of a viewer: one for the programs of each device, one for their ops, one for each link, and
// one for runs. Events of one track never overlap. If some do (a device with several queues, copies at the same time),
// there are more tracks of that name, "cpu:simd (2)".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shunt/trace.h"

namespace shunt::trace {

struct Tracks {
  std::vector<std::string> names;       // runs, then devices and links as they first appear
  std::vector<std::uint32_t> of_event;  // an index into `names` for each event
};

[[nodiscard]] Tracks tracks_of(const Recording& recording);

}  // namespace shunt::trace
