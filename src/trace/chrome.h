// A recorder's events as a trace that chrome://tracing and ui.perfetto.dev open: a track per device, and in
// otherData how many events there were and how many of the first are missing.
// Format: Trace Event Format, "complete" events
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#pragma once

#include <string>

#include "shunt/status.h"
#include "trace/recorder.h"

namespace shunt::trace {

[[nodiscard]] std::string to_chrome_json(const Recorder& recorder);
// The file appears when it is whole, or not at all. Errors: invalid for what is no regular file, io.
[[nodiscard]] Status write_chrome_trace(const Recorder& recorder, const std::string& path);
// Whether write_chrome_trace() would be let to write there; leaves nothing behind. Errors: the same.
[[nodiscard]] Status check_trace_path(const std::string& path);

}  // namespace shunt::trace
