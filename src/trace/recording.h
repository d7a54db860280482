// What a recorder held at one moment, or what a file has of that: what exports, summaries and reports are made of.
// A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/recorder.h"

namespace shunt::trace {

struct Recording {
  std::vector<ExecutionEvent> events;  // as they ended, the first to end first
  std::vector<std::string> labels;     // the texts of an event's labels; the first is empty
  Attachments attachments;
  std::uint64_t recorded = 0;     // events, including
  std::uint64_t overwritten = 0;  // those that are missing: the oldest

  [[nodiscard]] const std::string& text_of(Label label) const { return labels[label < labels.size() ? label : 0]; }
  // The kind of op that ran, such as "matmul". REQUIRES: an event of kind op.
  [[nodiscard]] std::string_view op_of(const ExecutionEvent& event) const;
};

[[nodiscard]] Recording recording_of(const Recorder& recorder);

// "ok", or the name of the error.
[[nodiscard]] std::string_view outcome_of(const ExecutionEvent& event);
// Of the earliest event; 0 where there is none.
[[nodiscard]] std::uint64_t origin_ns(const Recording& recording);
// Microseconds.
[[nodiscard]] constexpr double us_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

// One JSON object per event and line, times in microseconds since the earliest.
[[nodiscard]] std::string to_json_lines(const Recording& recording);

}  // namespace shunt::trace
