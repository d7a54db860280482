// Counts nothing: WebAssembly has no access to a processor's counters.
#include "base/system/event_counter.h"

namespace shunt {

std::optional<EventCounter> count_instructions() { return std::nullopt; }
std::optional<double> instructions_per_cycle(const std::optional<EventCounter>&) { return std::nullopt; }
EventCounter::~EventCounter() = default;

}  // namespace shunt
