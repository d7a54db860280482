// What JSON lines and traces for viewers say alike of an event.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shunt/trace.h"

namespace shunt::trace {

// Texts as JSON has them, in quotes; what is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::vector<std::string> quoted(std::span<const std::string> texts);

// ',"device":...' and so on: all but kind, name and times, and of that only what is known. `texts` are the quoted
// labels.
[[nodiscard]] std::string fields_of(const ExecutionEvent& event, std::span<const std::string> texts);

}  // namespace shunt::trace
