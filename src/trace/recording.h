// Recordings (shunt/trace.h) of recorders. Plain functions; any thread.
#pragma once

#include <cstdint>

#include "shunt/trace.h"

namespace shunt::trace {

class Recorder;

[[nodiscard]] Recording recording_of(const Recorder& recorder);

// Of the earliest event; 0 where there is none.
[[nodiscard]] std::uint64_t origin_ns(const Recording& recording);

}  // namespace shunt::trace
