// The JSON fields of an event that JSON lines and traces for viewers share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shunt/trace.h"

namespace shunt::trace {

// Quotes texts for JSON; invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::vector<std::string> quoted(std::span<const std::string> texts);

// Returns ',"device":...' and so on: every known field except kind, name and times. `texts` are the quoted labels.
[[nodiscard]] std::string fields_of(const ExecutionEvent& event, std::span<const std::string> texts);

}  // namespace shunt::trace
