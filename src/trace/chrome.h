// A recording as a trace that chrome://tracing and ui.perfetto.dev open, and back: tracks.h says which tracks it has.
// otherData holds how many events there were and how many of the first are missing, and the attachments: the plans with
// every decision and its candidates, and what the recording's maker knew of it.
// Format: Trace Event Format, "complete" events
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#pragma once

#include <string>
#include <string_view>

#include "shunt/status.h"
#include "shunt/trace.h"

namespace shunt::trace {

[[nodiscard]] std::string to_chrome_json(const Recording& recording);
// What to_chrome_json() was given, but for the origin of its times and labels that no event has. `origin`: what
// messages call the text. Errors: invalid for what is no such trace.
[[nodiscard]] Result<Recording> from_chrome_json(std::string_view text, std::string_view origin);
// From a file. Errors: io; those of from_chrome_json().
[[nodiscard]] Result<Recording> read_chrome_trace(const std::string& path);

}  // namespace shunt::trace
