// Makes recordings (shunt/trace.h) from recorders. Plain functions; any thread.
#pragma once

#include <cstdint>

#include "shunt/trace.h"

namespace shunt::trace {

class Recorder;

[[nodiscard]] Recording recording_of(const Recorder& recorder);

// Returns the events of two recordings of one recorder, the later of which was cleared after the first. Events that the
// later one lacks, and its runs that lack some, do not count as recorded.
[[nodiscard]] Recording joined(Recording first, Recording later);

// The time since which no event is missing.
[[nodiscard]] std::uint64_t complete_since_ns(const Recording& recording);

// The start of the earliest event; 0 if there is none.
[[nodiscard]] std::uint64_t origin_ns(const Recording& recording);

}  // namespace shunt::trace
