// Writes a recording as a trace that chrome://tracing and ui.perfetto.dev open, and reads it back. Its tracks are those
// of tracks.h. otherData holds the number of events, and how many of the first are missing. It also holds the
// attachments: plans with every decision and its candidates, and what the maker of the recording knew about it.
//
// Format: Trace Event Format, "complete" events
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#pragma once

#include <string>
#include <string_view>

#include "shunt/status.h"
#include "shunt/trace.h"

namespace shunt::trace {

[[nodiscard]] std::string to_chrome_json(const Recording& recording);
// Returns what to_chrome_json() was given, except for the origin of its times and labels without events. `origin`: what
// messages call the text. Errors: invalid if it is no such trace.
[[nodiscard]] Result<Recording> from_chrome_json(std::string_view text, std::string_view origin);
// Reads a file. Errors: io; those of from_chrome_json().
[[nodiscard]] Result<Recording> read_chrome_trace(const std::string& path);

}  // namespace shunt::trace
