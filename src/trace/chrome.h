// A recorder's events as a trace that chrome://tracing and ui.perfetto.dev open: a track per device.
// Format: Trace Event Format, "complete" events
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#pragma once

#include <string>

#include "shunt/status.h"
#include "trace/recorder.h"

namespace shunt::trace {

[[nodiscard]] std::string to_chrome_json(const Recorder& recorder);
// Errors: io.
[[nodiscard]] Status write_chrome_trace(const Recorder& recorder, const std::string& path);

}  // namespace shunt::trace
