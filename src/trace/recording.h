// Makes recordings (shunt/trace.h) from recorders. Plain functions; any thread.
#pragma once

#include <cstdint>

#include "shunt/trace.h"

namespace shunt::trace {

class Recorder;

[[nodiscard]] Recording recording_of(const Recorder& recorder);

// The start of the earliest event; 0 if there is none.
[[nodiscard]] std::uint64_t origin_ns(const Recording& recording);

}  // namespace shunt::trace
